/** The baseline: bare node:https that parses the request as JSON and responds with JSON of the webhook's size. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { serveMeasured } from '../support/child.ts';

const { tlsDir, responseBytes } = JSON.parse(process.argv[2] ?? '{}') as {
  tlsDir: string;
  responseBytes: number;
};
const frame = JSON.stringify({ uid: '', padding: '' }).length + '705ab4f5-6393-11e8-b7cc-42010a800002'.length;
const padding = 'x'.repeat(Math.max(0, responseBytes - frame));

const server = createServer(
  {
    cert: readFileSync(join(tlsDir, 'tls.crt')),
    key: readFileSync(join(tlsDir, 'tls.key')),
    keepAliveTimeout: 120_000,
  },
  (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const review = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { request: { uid: string } };
      const body = JSON.stringify({ uid: review.request.uid, padding });
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      });
      response.end(body);
    });
  },
);
server.listen(0, '127.0.0.1', () => {
  serveMeasured(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`);
});
