/** Sends AdmissionReviews as the API server does, by HTTPS with keep-alive. Rejects if one is not allowed. */
import { Agent, request } from 'node:https';

export interface Sender {
  /** @throws if the response is not an allowed review */
  post(url: string, review: string): Promise<void>;
  close(): void;
}

/** As the API server's default for a webhook. */
const timeoutMs = 10_000;

export function createSender({ ca, connections }: { ca: string; connections: number }): Sender {
  const agent = new Agent({ ca, keepAlive: true, maxSockets: connections });
  return {
    post: (url, review) =>
      new Promise((resolve, reject) => {
        const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(review) };
        const sent = request(url, { method: 'POST', agent, headers, timeout: timeoutMs }, (response) => {
          let body = '';
          response.setEncoding('utf8').on('data', (chunk: string) => {
            body += chunk;
          });
          response.on('error', reject).on('end', () => {
            if (response.statusCode === 200 && body.includes('"allowed":true')) resolve();
            else reject(new Error(`${response.statusCode}: ${body.slice(0, 300)}`));
          });
        });
        sent.on('error', reject).on('timeout', () => sent.destroy(new Error('no answer in time')));
        sent.end(review);
      }),
    close: () => agent.destroy(),
  };
}
