/** Load over TLS keep-alive: so many connections, each sending its next request when the last is answered. */
import { Agent, request } from 'node:https';

export interface Load {
  readonly url: string;
  readonly ca: string;
  readonly body: Buffer;
  readonly connections: number;
  readonly requests: number;
}

export interface LoadResult {
  readonly seconds: number;
  /** One for each request, milliseconds, sorted. */
  readonly latencies: readonly number[];
  readonly answerBytes: number;
}

/** @throws where an answer is not 200 */
export async function runLoad(load: Load): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: load.connections, ca: load.ca });
  const latencies: number[] = [];
  let answerBytes = 0;
  let left = load.requests;

  async function connection(): Promise<void> {
    while (left > 0) {
      left -= 1;
      const started = performance.now();
      answerBytes = await post(load, agent);
      latencies.push(performance.now() - started);
    }
  }
  const started = performance.now();
  await Promise.all(Array.from({ length: load.connections }, connection));
  const seconds = (performance.now() - started) / 1000;
  agent.destroy();
  return { seconds, latencies: latencies.sort((a, b) => a - b), answerBytes };
}

function post({ url, body }: Load, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => (bytes += chunk.length));
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve(bytes);
        else reject(new Error(`status ${response.statusCode}`));
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
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
