/** Responses of servers as bytes on a socket (heads, bodies, redirects), and the state file on disk. */
import { Agent } from 'node:http';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '../../../src/async/clock.ts';
import { readAgentInfo } from '../../../src/fleet/agents.ts';
import { readBody, readLines } from '../../../src/http/body.ts';
import { createHttpClient, retryAfter } from '../../../src/http/client.ts';
import { openExchange } from '../../../src/http/exchange.ts';
import { endpointReach } from '../../../src/http/reach/reach.ts';
import { TransportError } from '../../../src/http/transport-error.ts';
import { parseJson } from '../../../src/http/json.ts';
import { FactsFile } from '../../../src/images/cache/facts-file.ts';
import { InvalidFacts, readFacts } from '../../../src/images/facts/wire.ts';
import { createKubeClient } from '../../../src/kube/api/client.ts';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { followRedirects } from '../../../src/registry/net/guarded-client.ts';
import { listen } from '../listen.ts';
import { words } from './inputs.ts';
import { Directory, must, unlessRefused, type FuzzTarget } from './target.ts';
import { silentLog as log } from '../captured.ts';

const digest = `sha256:${'b'.repeat(64)}`;

/** A server that sends the same bytes to each connection, and ends it. */
let answer: Uint8Array = Buffer.alloc(0);
let opened: { readonly server: Server; readonly clients: ReturnType<typeof connectTo> } | undefined;

async function clients(): Promise<ReturnType<typeof connectTo>> {
  if (opened) return opened.clients;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(answer));
  });
  const connected = connectTo(`http://127.0.0.1:${await listen(server)}`);
  opened = { server, clients: connected };
  return connected;
}

function connectTo(server: string) {
  const access = { server, namespace: 'a', description: 'a test', now: () => Promise.resolve({ tls: {} }) };
  return {
    url: new URL(server),
    pool: new Agent(),
    registry: createHttpClient({ environment: {}, clock: systemClock }),
    kube: createKubeClient({ access, userAgent: 'a' }),
  };
}

const facts = `{"image":"nginx@${digest}","digest":"${digest}","mediaType":"application/json","platforms":[{"os":"linux","architecture":"arm64"}],"source":"registry","credentialSource":"anonymous","endpoint":"r.io","confirmedAt":"2026-11-21T00:00:00Z","stale":false}`;

const disk = new Directory();

export const httpTargets: readonly FuzzTarget[] = [
  {
    name: 'HTTP responses',
    share: 1,
    examples: [
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ndate: Sat, 21 Nov 2026 10:00:00 GMT\r\n\r\n3\r\n{}\n\r\n0\r\n\r\n',
      'HTTP/1.1 429 Too Many Requests\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n',
      'HTTP/1.1 302 Found\r\nlocation: https://a/b\r\ncontent-encoding: gzip\r\n\r\n',
    ],
    words: words('HTTP/1.1 HTTP/2 100 204 999 : ; chunked ffffffffff -1', '\r\n', '\r\n\r\n', ' '),
    feed: async (input) => {
      answer = input;
      const { url, pool, registry, kube } = await clients();
      const signal = AbortSignal.timeout(10_000);
      const reach = endpointReach({ base: url.href, origin: 'proxies' });
      const tls = { ca: [], client: [], skipVerify: false };
      const refused = [TransportError, KubeError];
      const request = { method: 'GET', url, headers: {}, maxBytes: 65_536, tls, reach } as const;
      await unlessRefused(refused, async () => {
        const { headers } = await registry.send(request, signal);
        retryAfter(headers['retry-after']?.[0] ?? '', 0);
      });
      await unlessRefused(refused, () => kube.get('/api/v1/pods', { signal }));
      await unlessRefused(refused, async () => {
        const limits = { dialMs: 5000 };
        const response = await openExchange(
          { method: 'GET', url, headers: {}, pool, limits, repeatable: false },
          signal,
        );
        for await (const line of readLines(response, { maxLineBytes: 1000, maxBytes: 65_536 }))
          must(line.length <= 65_536, 'a line that is too long');
        await readBody(response, 10);
      });
    },
    close: async () => {
      opened?.clients.registry.close();
      opened?.clients.kube.close();
      opened?.server.close();
      opened = undefined;
      await Promise.resolve();
    },
  },
  {
    name: 'redirects',
    share: 20,
    examples: [
      'https://cdn.example/blobs/a?sig=b\n/v2/other',
      '//other.example/v2\nhttp://a/b',
      '../x\nhttps://u:p@a/',
    ],
    words: words('https:// http:// file:/// // ? # @ : [ ] 127.0.0.1 169.254.169.254', '\n'),
    feed: async (_, text) => {
      const locations = text.split('\n');
      let sent = 0;
      const url = new URL('https://registry.corp/v2/a/manifests/1');
      const ownHeaders = { authorization: 'Bearer secret' };
      const reach = endpointReach({ base: url.href, origin: 'default' });
      const tls = { ca: [], client: [], skipVerify: false };
      const request = { method: 'GET', url, headers: {}, ownHeaders, maxBytes: 10, tls, reach } as const;
      await followRedirects(request, (step) => {
        const hasSecret = step.headers['authorization'] !== undefined;
        must(!hasSecret || step.url.host === url.host, 'a secret for another host');
        const location = locations[sent++];
        const headers = location === undefined ? {} : { location: [location] };
        const status = location === undefined ? 200 : 307;
        return Promise.resolve({ status, headers, remoteAddress: '203.0.113.7', body: Buffer.alloc(0) });
      });
      must(sent <= 7, 'too many requests');
    },
    expected: [TransportError],
  },
  {
    name: 'responses of agents',
    examples: [
      facts,
      `${facts}\n${facts.replace(`nginx@${digest}`, 'nginx')}`,
      '{"image":"nginx","platforms":[],"source":"memory","credentialSource":"docker-config","endpoint":"","confirmedAt":"2026-11-21T00:00:00Z","stale":true,"error":{"code":"rate-limited","message":"later","retryAfterMs":1000}}',
      '{"nodeName":"n1","architecture":"arm64","version":"1","credentialFingerprint":"abc"}',
    ],
    words: words('{ } [ ] , null "digest": "confirmedAt":"9999-12-31T23:59:59Z"', '\n'),
    feed: async (_, text) => {
      for (const line of text.split('\n')) {
        await unlessRefused([InvalidFacts], () => readFacts(parseJson(line)));
      }
      readAgentInfo(JSON.parse(text));
    },
    expected: [SyntaxError],
  },
  {
    name: 'state file',
    share: 2,
    examples: [`${facts}\n${facts.replace('arm64', 'amd64')}\n`, ''],
    words: words('{ } [ ] , null "digest": "confirmedAt":"9999-12-31T23:59:59Z"', '\n'),
    feed: async (input) => {
      const path = join(disk.write({ 'facts.ndjson': input }), 'facts.ndjson');
      let learned = 0;
      const into = { learn: () => (learned += 1), clear: () => (learned = 0) };
      const count = await new FactsFile({ path, log }).load(into);
      must(count === learned, 'another number of facts');
    },
    close: () => disk.remove(),
  },
];
