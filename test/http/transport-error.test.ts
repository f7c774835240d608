import t from 'tap';
import { TransportError, transportError } from '../../src/http/transport-error.ts';

const withCode = (code: string, message = 'words of the system') =>
  Object.assign(new Error(message), { code });

t.test('each system error has one failure', async (t) => {
  const cases = [
    [withCode('ECONNREFUSED'), 'connect'],
    [new AggregateError([withCode('ECONNREFUSED'), withCode('ENETUNREACH')]), 'connect'],
    [withCode('EHOSTUNREACH'), 'connect'],
    [withCode('ENETUNREACH'), 'connect'],
    [withCode('ETIMEDOUT'), 'dial-timeout'],
    [withCode('ENOTFOUND'), 'resolve'],
    [withCode('EAI_AGAIN'), 'resolve'],
    [withCode('ECONNRESET'), 'closed'],
    [withCode('EPIPE'), 'closed'],
    [new Error('aborted'), 'closed'],
    ['no error at all', 'closed'],
    [withCode('DEPTH_ZERO_SELF_SIGNED_CERT'), 'tls'],
    [withCode('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), 'tls'],
    [withCode('UNABLE_TO_GET_ISSUER_CERT_LOCALLY'), 'tls'],
    [withCode('CERT_HAS_EXPIRED'), 'tls'],
    [withCode('ERR_TLS_CERT_ALTNAME_INVALID'), 'tls'],
    [withCode('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'), 'tls'],
    [withCode('EPROTO', 'write EPROTO 40:error:0A000410:SSL routines::alert handshake failure'), 'tls'],
    [withCode('EPROTO', 'write EPROTO 40:error:0A00010B:SSL routines::wrong version number'), 'not-tls'],
    [withCode('EPROTO', 'write EPROTO 40:error:0A0000C6:SSL routines::packet length too long'), 'not-tls'],
    [withCode('ERR_SSL_WRONG_VERSION_NUMBER'), 'not-tls'],
    [withCode('ERR_SSL_PACKET_LENGTH_TOO_LONG'), 'not-tls'],
    ...[
      'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE',
      'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE',
      'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
      'ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED',
      'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
      'ERR_SSL_TLSV1_ALERT_ACCESS_DENIED',
    ].map((code) => [withCode(code), 'client-certificate'] as const),
    [withCode('ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE'), 'tls'],
    [withCode('HPE_HEADER_OVERFLOW'), 'too-large'],
    [withCode('HPE_INVALID_CONSTANT'), 'garbage'],
    [withCode('ERR_INVALID_CHAR'), 'invalid'],
    [withCode('ERR_UNESCAPED_CHARACTERS'), 'invalid'],
    [withCode('ERR_INVALID_HTTP_TOKEN'), 'invalid'],
  ] as const;
  for (const [error, failure] of cases) {
    const named = transportError(error, 'registry.corp');
    t.match(named, { name: 'TransportError', failure, where: 'registry.corp' }, String(error));
    t.notMatch(named.message, /words of the system|SSL routines/);
  }
  const once = new TransportError('closed', 'here', 'words');
  t.equal(transportError(once, 'there'), once);
});

t.test('an error holds no bytes of the server', async (t) => {
  const error = Object.assign(withCode('HPE_INVALID_CONSTANT'), { rawPacket: Buffer.from('secret') });
  t.equal(transportError(error, 'registry.corp').cause, undefined);
});
