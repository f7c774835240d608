/** Limits of all servers. They protect the process from slow, dead or numerous clients. */
export interface ServerLimits {
  /** Idle connections are closed after this. */
  readonly keepAliveMs: number;
  /** From the first byte of a request, or from the connection, to the end of its headers. */
  readonly headersMs: number;
  /** From the first byte of a request to the end of its body. */
  readonly requestMs: number;
  /** Limit of a TLS handshake. */
  readonly handshakeMs: number;
  /** A connection with an open request is closed after this without traffic. */
  readonly stalledMs: number;
  /** Interval for checking `headersMs` and `requestMs`. */
  readonly checkMs: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** While draining: responses announce the close for this long, before idle connections are closed. */
  readonly quietMs: number;
}

export const serverLimits: ServerLimits = {
  // Go's transport in the API server closes idle connections after 90 s. It does not repeat a POST if the server closed the
  // connection, so the client must close first.
  keepAliveMs: 120_000,
  // Headers are one packet; ten seconds allow for retransmissions.
  headersMs: 10_000,
  // A webhook's timeoutSeconds is at most 30: the API server does not wait longer for the answer.
  requestMs: 30_000,
  // A handshake is two round trips and about half a millisecond of work.
  handshakeMs: 10_000,
  // Twice the longest request: such a peer is dead.
  stalledMs: 60_000,
  // Limits are exceeded by at most this. Checking all connections once a second has no measurable cost.
  checkMs: 1000,
  // The API server sends less than 1 KiB. This is Node's default.
  maxHeaderBytes: 16 * 1024,
  // An API server opens one connection for each open call and keeps 25 of them; 50 concurrent creates opened about 100.
  // At 50 KiB each, this is 100 MiB, the limit for a small pod.
  maxConnections: 2048,
  // Busy connections carry one more answer in this time, which announces the close. Connections that are idle then are
  // rarely about to be used.
  quietMs: 1000,
};
