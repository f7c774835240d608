/** The registries of the box, by names in `/etc/hosts`. Requests are recorded; user agents show the side. */
import { writeFileSync } from 'node:fs';
import { createCa } from '../../support/certificates.ts';
import type { RecordedRequest } from '../../support/registry/record.ts';
import { startTestRegistry, type TestRegistry } from '../../support/registry/server.ts';
import { createIssuer } from '../../support/registry/tokens.ts';
import { referenceOf } from './recorder.ts';
import { emptyTar, unpackable } from '../layout.ts';
import { nodeArchitecture } from './node.ts';
import { users, type CaseImage } from './setup.ts';

export type Side = 'kubelet' | 'agent';

export interface Seen {
  readonly at: number;
  readonly side: Side;
  readonly domain: string;
  /** Path below the domain. */
  readonly repository: string;
  /** Absent for tokens, blobs and requests by digest. */
  readonly tag?: string;
  /** The credential: `user:password`; absent if anonymous. */
  readonly presented?: string;
  readonly status: number;
}

export type Registries = Awaited<ReturnType<typeof startRegistries>>;

const basicHosts = ['registry.example', 'eu.registry.example', 'a.b.corp.example', 'registry-1.docker.io'];
const tokenHosts = ['tokens.example'];
const caFile = '/etc/registries-ca.crt';

export async function startRegistries() {
  const ca = await createCa('registries');
  writeFileSync(caFile, ca.cert);
  writeFileSync(
    '/etc/hosts',
    `127.0.0.1 localhost\n10.99.0.1 ${basicHosts.join(' ')}\n10.99.0.2 ${tokenHosts.join(' ')}\n`,
  );

  const basic = { kind: 'basic', users } as const;
  const issuer = createIssuer({ users });
  const realm = 'https://tokens.example/token';
  const bearer = { kind: 'bearer', issuer, realm, service: 'tokens' } as const;
  const secure = { tls: ca, names: [...basicHosts, ...tokenHosts] };
  const servers = {
    main: await startTestRegistry({ ...secure, auth: basic, listen: { address: '10.99.0.1', port: 443 } }),
    port: await startTestRegistry({ ...secure, auth: basic, listen: { address: '10.99.0.1', port: 5000 } }),
    tokens: await startTestRegistry({ ...secure, auth: bearer, listen: { address: '10.99.0.2', port: 443 } }),
    local: await startTestRegistry({ tls: false, auth: basic, listen: { address: '127.0.0.1', port: 5001 } }),
  };
  // It cannot start, so its pod fails at once and the kubelet ends it.
  const config = { Entrypoint: ['/no-such-program'] };
  const content = unpackable(`linux/${nodeArchitecture}`, emptyTar, config);

  function serverOf(domain: string): TestRegistry {
    if (domain.endsWith(':5000')) return servers.port;
    if (domain.endsWith(':5001')) return servers.local;
    return tokenHosts.includes(domain) ? servers.tokens : servers.main;
  }

  return {
    caFile,
    push: ({ image, absent }: CaseImage): void => {
      const reference = referenceOf(image);
      if (absent === true || reference === undefined) return;
      serverOf(reference.domain).push(reference.path, reference.tag ?? 'latest', content);
    },
    seen: (): readonly Seen[] =>
      Object.values(servers)
        .flatMap(({ requests }) => requests.map(readRequest))
        .sort((a, b) => a.at - b.at),
    clear: (): void => {
      for (const server of Object.values(servers)) server.clearRequests();
    },
  };
}

function readRequest(request: RecordedRequest): Seen {
  const { at, headers, path, query, status } = request;
  const [, repository, tag] = /^\/v2\/(.+)\/(?:manifests|blobs)\/([^/]+)$/.exec(path) ?? [];
  const scope = /^repository:(.+):/.exec(
    query.get('scope') ?? new URLSearchParams(request.body).get('scope') ?? '',
  );
  const presented = presentedIn(request);
  return {
    at,
    side: headers['user-agent']?.startsWith('containerd') === true ? 'kubelet' : 'agent',
    domain: headers.host === 'registry-1.docker.io' ? 'docker.io' : (headers.host ?? ''),
    repository: repository ?? scope?.[1] ?? '',
    ...(tag === undefined || tag.includes(':') ? {} : { tag }),
    ...(presented === undefined ? {} : { presented }),
    status,
  };
}

function presentedIn({ headers, authorization, body }: RecordedRequest): string | undefined {
  const basic = /^basic (.+)$/i.exec(headers.authorization ?? '')?.[1];
  if (basic !== undefined) return Buffer.from(basic, 'base64').toString();
  const form = new URLSearchParams(body);
  const user = form.get('username');
  if (user !== null) return `${user}:${form.get('password') ?? ''}`;
  if (authorization === undefined || authorization.user === '') return undefined;
  return `${authorization.user}:${users[authorization.user] ?? ''}`;
}
