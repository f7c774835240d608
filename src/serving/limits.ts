/**
 * Times and sizes that every server of the program keeps, each with its reason. They protect a process from clients
 * that are slow, dead or many; tests inject smaller ones.
 */
export interface ServerLimits {
  /** An idle connection is kept this long. */
  readonly keepAliveMs: number;
  /** From the first byte of a request, or from the connection, to the end of its headers. */
  readonly headersMs: number;
  /** From the first byte of a request to the end of its body. */
  readonly requestMs: number;
  /** A TLS handshake must be through by then. */
  readonly handshakeMs: number;
  /** A connection with a request on it, on which no byte moves for this long, is closed. */
  readonly stalledMs: number;
  /** How often `headersMs` and `requestMs` are checked. */
  readonly checkMs: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** While draining: connections are told to close for this long before idle ones are closed on their clients. */
  readonly quietMs: number;
}

export const serverLimits: ServerLimits = {
  // Go's transport, and with it the API server, drops idle connections after 90 s. It does not repeat a POST on a
  // connection that was closed under it, so the client must be the one who closes.
  keepAliveMs: 120_000,
  // Headers are one packet; ten seconds forgive retransmissions and nothing else.
  headersMs: 10_000,
  // A webhook's timeoutSeconds is at most 30: whoever sends longer has nobody waiting for the answer.
  requestMs: 30_000,
  // A handshake is two round trips and about half a millisecond of work.
  handshakeMs: 10_000,
  // Twice the longest request: a peer that takes nothing for so long is gone.
  stalledMs: 60_000,
  // A limit is overrun by at most this, and walking the connections once a second costs nothing that can be measured.
  checkMs: 1000,
  // The API server sends less than 1 KiB; 16 KiB is Node's own default, written down because it is a limit.
  maxHeaderBytes: 16 * 1024,
  // An API server opens one connection for each call in flight and keeps 25 of them; 50 creates at once made about 100.
  // At some 50 KiB each, this many cost 100 MiB, the most a small pod can afford.
  maxConnections: 2048,
  // Long enough for busy connections to carry one more answer, which tells them to close; what is still idle then is
  // hardly ever about to be used.
  quietMs: 1000,
};
