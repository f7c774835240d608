/** Contract of a running HTTP or HTTPS server. */
export interface RunningServer {
  /** `https://127.0.0.1:8443`, with the port that was bound. */
  readonly url: string;
  readonly port: number;
  /** Stops accepting, answers what is in flight with `Connection: close`, and ends after `graceMs` at the latest. */
  drain(graceMs: number): Promise<void>;
}
