/**
 * Load over TLS keep-alive: each connection sends its next request after the last response. It writes
 * prepared bytes and reads only status and length, so it costs less than the measured servers. A generator
 * that is the bottleneck makes them look better than they are.
 */
import { connect, type TLSSocket } from 'node:tls';

export interface LoadOptions {
  readonly url: string;
  readonly ca: string;
  readonly body: Buffer;
  readonly connections: number;
}

export interface LoadResult {
  readonly seconds: number;
  /** One for each request, milliseconds, sorted. */
  readonly latencies: readonly number[];
  readonly responseBytes: number;
}

/** Open connections, kept over all runs: no run includes handshakes. */
export interface Load {
  /** @throws if a response is not 200 or has no length */
  run(requests: number): Promise<LoadResult>;
  close(): void;
}

export async function openLoad(options: LoadOptions): Promise<Load> {
  const { pathname, search, hostname, port } = new URL(options.url);
  const head =
    `POST ${pathname}${search} HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-type: application/json\r\n` +
    `accept: application/json, */*\r\nuser-agent: kube-apiserver-admission\r\ncontent-length: ${options.body.length}\r\n\r\n`;
  const request = Buffer.concat([Buffer.from(head), options.body]);
  const sockets = await Promise.all(
    Array.from({ length: options.connections }, () => open(hostname, Number(port), options.ca)),
  );

  return {
    run: async (requests) => {
      const latencies: number[] = [];
      let left = requests;
      let responseBytes = 0;

      function drive(socket: TLSSocket): Promise<void> {
        return new Promise((resolve, reject) => {
          let started = 0;
          let missing = 0;
          function next(): void {
            if (left === 0) return end();
            left -= 1;
            started = performance.now();
            socket.write(request);
          }
          function end(error?: Error): void {
            socket.off('data', read).off('error', end);
            if (error) reject(error);
            else resolve();
          }
          function read(chunk: Buffer): void {
            if (missing === 0) {
              const response = lengths(chunk);
              if (response === undefined)
                return end(new Error(`not 200: ${chunk.toString('latin1').slice(0, 300)}`));
              responseBytes = response.body;
              missing = response.head + response.body;
            }
            missing -= chunk.length;
            if (missing > 0) return;
            latencies.push(performance.now() - started);
            next();
          }
          socket.on('error', end).on('data', read);
          next();
        });
      }

      const started = performance.now();
      await Promise.all(sockets.map(drive));
      const seconds = (performance.now() - started) / 1000;
      return { seconds, latencies: latencies.sort((a, b) => a - b), responseBytes };
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function open(host: string, port: number, ca: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, ca, ALPNProtocols: ['http/1.1'] }, () => {
      socket.off('error', reject);
      resolve(socket);
    });
    socket.on('error', reject).setNoDelay(true);
  });
}

/** Length of headers and body of a response with status 200, from its first chunk, which holds all headers. */
function lengths(chunk: Buffer): { head: number; body: number } | undefined {
  const end = chunk.indexOf('\r\n\r\n');
  const head = chunk.toString('latin1', 0, end);
  const length = /^content-length: (\d+)$/im.exec(head)?.[1];
  if (end < 0 || !head.startsWith('HTTP/1.1 200 ') || length === undefined) return undefined;
  return { head: end + 4, body: Number(length) };
}

/** The value below which a share of sorted values lies. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export function median(values: readonly number[]): number {
  return percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  );
}
