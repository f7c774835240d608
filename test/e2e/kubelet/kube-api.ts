/** As much of a Kubernetes client as is needed to make pods and to hear what becomes of them. */
import { request } from 'node:https';
import { createInterface } from 'node:readline';
import type { IncomingMessage } from 'node:http';

export interface KubeApi {
  /** @throws where the answer is not 2xx */
  call(method: string, path: string, body?: unknown): Promise<unknown>;
  /** Events of a watch until it is closed. */
  watch(path: string, onObject: (object: unknown) => void): Promise<{ close(): void }>;
}

const timeoutMs = 30_000;

/** @param server `https://…` */
export function connectKube(server: string, ca: string, token: string): KubeApi {
  function open(method: string, path: string, body?: unknown): Promise<IncomingMessage> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const sent = request(
        new URL(path, server),
        {
          method,
          ca,
          headers: { authorization: `Bearer ${token}`, ...(text && { 'content-type': 'application/json' }) },
        },
        resolve,
      );
      sent.setTimeout(timeoutMs, () => sent.destroy(new Error(`${method} ${path}: no answer`)));
      sent.on('error', reject);
      sent.end(text);
    });
  }

  return {
    call: async (method, path, body) => {
      const answer = await open(method, path, body);
      const chunks: Buffer[] = [];
      for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString();
      const status = answer.statusCode ?? 0;
      if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${text}`);
      return text.startsWith('{') ? (JSON.parse(text) as unknown) : text;
    },
    watch: async (path, onObject) => {
      const answer = await open('GET', `${path}?watch=true`);
      if (answer.statusCode !== 200) throw new Error(`watch of ${path}: ${answer.statusCode ?? 0}`);
      answer.setTimeout(0);
      answer.on('error', () => undefined);
      createInterface({ input: answer }).on('line', (line) => {
        onObject((JSON.parse(line) as { object: unknown }).object);
      });
      return { close: () => void answer.destroy() };
    },
  };
}
