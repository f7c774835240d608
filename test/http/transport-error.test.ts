import t from 'tap';
import { TransportError, transportError } from '../../src/http/transport-error.ts';
import { like } from '../support/like.ts';

const withCode = (code: string, message = 'words of the system') =>
  Object.assign(new Error(message), { code });

t.test('each system error maps to one failure', async (t) => {
  const codes = {
    connect: 'ECONNREFUSED EHOSTUNREACH ENETUNREACH',
    'dial-timeout': 'ETIMEDOUT',
    resolve: 'ENOTFOUND EAI_AGAIN',
    closed: 'ECONNRESET EPIPE',
    tls: `DEPTH_ZERO_SELF_SIGNED_CERT UNABLE_TO_VERIFY_LEAF_SIGNATURE UNABLE_TO_GET_ISSUER_CERT_LOCALLY
      CERT_HAS_EXPIRED ERR_TLS_CERT_ALTNAME_INVALID ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION
      ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE`,
    'not-tls': 'ERR_SSL_WRONG_VERSION_NUMBER ERR_SSL_PACKET_LENGTH_TOO_LONG',
    'client-certificate': `ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE
      ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED
      ERR_SSL_TLSV1_ALERT_UNKNOWN_CA ERR_SSL_TLSV1_ALERT_ACCESS_DENIED`,
    'too-large': 'HPE_HEADER_OVERFLOW',
    garbage: 'HPE_INVALID_CONSTANT',
    invalid: 'ERR_INVALID_CHAR ERR_UNESCAPED_CHARACTERS ERR_INVALID_HTTP_TOKEN',
  };
  const cases: (readonly [error: unknown, failure: string])[] = [
    [new AggregateError([withCode('ECONNREFUSED'), withCode('ENETUNREACH')]), 'connect'],
    [new Error('aborted'), 'closed'],
    ['no error at all', 'closed'],
    [withCode('EPROTO', 'write EPROTO 40:error:0A000410:SSL routines::alert handshake failure'), 'tls'],
    [withCode('EPROTO', 'write EPROTO 40:error:0A00010B:SSL routines::wrong version number'), 'not-tls'],
    [withCode('EPROTO', 'write EPROTO 40:error:0A0000C6:SSL routines::packet length too long'), 'not-tls'],
  ];
  for (const [failure, names] of Object.entries(codes)) {
    for (const code of names.split(/\s+/)) cases.push([withCode(code), failure]);
  }
  for (const [error, failure] of cases) {
    const named = transportError(error, 'registry.corp');
    like(t, named, { name: 'TransportError', failure, where: 'registry.corp' }, String(error));
    t.notMatch(named.message, /words of the system|SSL routines/);
  }
  const once = new TransportError('closed', 'here', 'words');
  t.equal(transportError(once, 'there'), once);
});

t.test('an error contains no bytes of the server', async (t) => {
  const error = Object.assign(withCode('HPE_INVALID_CONSTANT'), { rawPacket: Buffer.from('secret') });
  t.equal(transportError(error, 'registry.corp').cause, undefined);
});
