/** What can go wrong in an HTTP exchange: names, addresses, connections, TLS, HTTP framing, size and time. */
import { errnoOf } from '../files/read.ts';

export type TransportFailure =
  | 'refused-address'
  | 'resolve'
  | 'connect'
  | 'tls'
  | 'not-tls'
  | 'client-certificate'
  | 'dial-timeout'
  | 'tls-timeout'
  | 'header-timeout'
  | 'idle-timeout'
  | 'total-timeout'
  | 'closed'
  | 'garbage'
  | 'too-large'
  | 'encoded'
  | 'invalid'
  | 'proxy'
  | 'redirect'
  | 'aborted';

/** How far an exchange had come: no connection yet, no header yet, or a body not read to its end. */
export type ExchangePhase = 'connect' | 'header' | 'body';

/** One failed HTTP exchange. `message` holds no header, body or user info. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly failure: TransportFailure;
  /** Host and port of the request. */
  readonly where: string;
  readonly phase: ExchangePhase;
  constructor(
    failure: TransportFailure,
    where: string,
    message: string,
    cause?: unknown,
    phase: ExchangePhase = 'connect',
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.failure = failure;
    this.where = where;
    this.phase = phase;
  }
}

/** The error's message with the system's own, for a peer that may be shown to people. */
export function messageWithCause({ message, cause }: TransportError): string {
  return cause instanceof Error ? `${message}: ${cause.message}` : message;
}

/** Codes of certificates that fail verification: Node uses OpenSSL's names. */
const certificateCodes = /CERT|SELF_SIGNED|UNABLE_TO_|ISSUER|SIGNATURE|CRL|HOSTNAME|ALTNAME|INVALID_PURPOSE/;

/**
 * OpenSSL's reasons if a peer answers a handshake with something other than TLS, such as `HTTP/1.1 400`:
 * wrong version number, packet length too long, http request, unknown protocol. Node reports the name, or
 * EPROTO with OpenSSL's number in the text.
 */
const notTls = /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNKNOWN_PROTOCOL)$/;
const notTlsNumbers = /error:0A0(0010B|000C6|0009C|000FC):/;

/** Alerts of a server that rejects the client certificate, or requires one. */
const clientCertificateAlerts =
  /ALERT_(?:BAD_CERTIFICATE|CERTIFICATE_[A-Z]+|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE|ACCESS_DENIED)$/;

const noAddress = ['resolve', 'the host name has no address'] as const;
const invalidCharacters = [
  'invalid',
  'a header or path contains characters that HTTP does not allow',
] as const;

/** Errors of Node that need no look at their text, by code. */
const failuresByCode: Readonly<Record<string, readonly [TransportFailure, string]>> = {
  ENOTFOUND: noAddress,
  ECONNREFUSED: ['connect', 'the connection was refused'],
  EHOSTUNREACH: ['connect', 'no route (EHOSTUNREACH)'],
  ENETUNREACH: ['connect', 'no route (ENETUNREACH)'],
  ETIMEDOUT: ['dial-timeout', 'the connection timed out'],
  ERR_INVALID_CHAR: invalidCharacters,
  ERR_INVALID_HTTP_TOKEN: invalidCharacters,
  ERR_UNESCAPED_CHARACTERS: invalidCharacters,
};

/** Classifies an error of Node's net, tls, dns or http module. */
export function transportError(
  error: unknown,
  where: string,
  phase: ExchangePhase = 'connect',
): TransportError {
  if (error instanceof TransportError) return error;
  const code = codeOf(error);
  const [failure, message] = classify(code, error);
  // Errors of the HTTP parser carry the server's bytes.
  return new TransportError(failure, where, message, code.startsWith('HPE_') ? undefined : error, phase);
}

function classify(code: string, error: unknown): readonly [TransportFailure, string] {
  const known = failuresByCode[code];
  if (known) return known;
  if (code.startsWith('EAI_')) return noAddress;
  if (notTls.test(code) || (code === 'EPROTO' && notTlsNumbers.test(String(error)))) {
    return ['not-tls', 'the server does not speak TLS'];
  }
  if (clientCertificateAlerts.test(code)) {
    return ['client-certificate', `the server rejects the client certificate, or requires one (${code})`];
  }
  if (code.startsWith('ERR_SSL') || code === 'EPROTO') return ['tls', `TLS handshake failed (${code})`];
  if (code === 'HPE_HEADER_OVERFLOW') return ['too-large', 'the header block is too large'];
  if (code.startsWith('HPE_')) return ['garbage', `the response is not HTTP (${code})`];
  if (certificateCodes.test(code)) return ['tls', `the certificate is not trusted (${code})`];
  return ['closed', `the connection was closed (${code === '' ? 'no reason given' : code})`];
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return errnoOf(error) ?? '';
}
