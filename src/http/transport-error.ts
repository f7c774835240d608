/** What can go wrong below the registry protocol: names, addresses, connections, TLS, HTTP framing, size and time. */

export const transportFailures = [
  'refused-address',
  'resolve',
  'connect',
  'tls',
  'not-tls',
  'dial-timeout',
  'tls-timeout',
  'header-timeout',
  'idle-timeout',
  'total-timeout',
  'closed',
  'garbage',
  'too-large',
  'encoded',
  'invalid',
  'proxy',
  'redirect',
  'aborted',
] as const;
export type TransportFailure = (typeof transportFailures)[number];

/** One failed HTTP exchange. `message` holds no header, body or user info of anybody. */
export class TransportError extends Error {
  readonly failure: TransportFailure;
  /** Host and port that were asked. */
  readonly where: string;
  constructor(failure: TransportFailure, where: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'TransportError';
    this.failure = failure;
    this.where = where;
  }
}

/** Codes of certificates that do not hold; Node names OpenSSL's verification results. */
const certificateCodes = /CERT|SELF_SIGNED|UNABLE_TO_|ISSUER|SIGNATURE|CRL|HOSTNAME|ALTNAME|INVALID_PURPOSE/;

/**
 * OpenSSL's reasons for a peer that answers a handshake with something else, such as `HTTP/1.1 400`: wrong version number,
 * packet length too long, http request, unknown protocol. Node gives them by name, or as EPROTO with OpenSSL's number in the text.
 */
const notTls = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNKNOWN_PROTOCOL)$/;
const notTlsNumbers = /error:0A0(0010B|000C6|0009C|000FC):/;

/** Alerts by which a server says what it thinks of our certificate, or that we showed none. */
const clientCertificateAlerts =
  /ALERT_(?:BAD_CERTIFICATE|CERTIFICATE_[A-Z]+|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE|ACCESS_DENIED)$/;

/**
 * Puts a name to an error of Node's net, tls, dns and http.
 * @param where host and port that were asked
 */
export function transportError(error: unknown, where: string): TransportError {
  if (error instanceof TransportError) return error;
  const code = codeOf(error);
  const make = (failure: TransportFailure, message: string): TransportError =>
    new TransportError(failure, where, message, error);
  if (notTls.test(code) || (code === 'EPROTO' && notTlsNumbers.test(String(error)))) {
    return make('not-tls', 'the server does not speak TLS');
  }
  if (clientCertificateAlerts.test(code)) {
    const advice = 'give the node one that it trusts, as `client` in hosts.toml';
    return make('tls', `the server wants another client certificate (${code}): ${advice}`);
  }
  if (code.startsWith('ERR_SSL') || code === 'EPROTO') return make('tls', `TLS handshake failed (${code})`);
  // These carry the server's bytes, so they are not kept as cause.
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new TransportError('too-large', where, 'the header block is too large');
  }
  if (code.startsWith('HPE_'))
    return new TransportError('garbage', where, `the answer is not HTTP (${code})`);
  if (code === 'ENOTFOUND' || code.startsWith('EAI_')) return make('resolve', 'the host name has no address');
  if (code === 'ECONNREFUSED') return make('connect', 'the connection was refused');
  if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH') return make('connect', `no route (${code})`);
  if (code === 'ETIMEDOUT') return make('dial-timeout', 'the connection timed out');
  if (
    code === 'ERR_INVALID_CHAR' ||
    code === 'ERR_INVALID_HTTP_TOKEN' ||
    code === 'ERR_UNESCAPED_CHARACTERS'
  ) {
    return make('invalid', 'a header or path holds characters that HTTP does not allow');
  }
  if (certificateCodes.test(code)) return make('tls', `the certificate is not trusted (${code})`);
  return make('closed', `the connection was closed (${code === '' ? 'no reason given' : code})`);
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}
