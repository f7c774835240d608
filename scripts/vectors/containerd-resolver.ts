/** The kind `resolver_with_hosts_dir`: real servers with a token server each. Some token servers are down. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { join } from 'node:path';
import { createContainerdEndpoints } from '../../daemon/containerd/endpoints.ts';
import { createRegistryClient } from '../../src/registry/client.ts';
import { inDirectory, write } from './directory.ts';
import type { Input } from './handler.ts';
import { flag, text } from './input.ts';

const names = ['upstream', 'mirror', 'server'] as const;
type Name = (typeof names)[number];

interface Host {
  readonly address: string;
  /** Headers of the requests that the registry and its token server got. */
  readonly registry: IncomingHttpHeaders[];
  readonly tokens: IncomingHttpHeaders[];
  close(): Promise<void>;
}

/** Hosts and headers of the requests, when some hosts are down. */
export function resolveWithHostsDir(input: Input): Promise<unknown> {
  return inDirectory(async (root) => {
    const hosts: Record<Name, Host> = {
      upstream: await startHost(),
      mirror: await startHost(),
      server: await startHost(),
    };
    try {
      if (!flag(input, 'mirrorUp')) await hosts.mirror.close();
      if (!flag(input, 'serverUp')) await hosts.server.close();
      const toml = text(input, 'toml')
        .replaceAll('$SERVER', `http://${hosts.server.address}`)
        .replaceAll('$MIRROR', `http://${hosts.mirror.address}`);
      await resolve(root, hosts.upstream.address, toml);
      return outcome(hosts);
    } finally {
      await Promise.all(Object.values(hosts).map((host) => host.close()));
    }
  });
}

async function resolve(root: string, namespace: string, hostsToml: string): Promise<void> {
  await write(join(root, 'certs.d', namespace, 'hosts.toml'), hostsToml);
  const registry = '[plugins."io.containerd.cri.v1.images".registry]';
  await write(join(root, 'config.toml'), `version = 3\n${registry}\nconfig_path = "/certs.d"\n`);
  const source = await createContainerdEndpoints({ hostRoot: root, candidates: ['/config.toml'] });
  const client = createRegistryClient({ environment: {}, hostRoot: root });
  try {
    const endpoints = await source.endpoints({ domain: namespace });
    const request = { repository: 'app', reference: 'v1', endpoints, credentials: [] };
    await client.lookup(request, AbortSignal.timeout(10_000));
  } finally {
    client.close();
    await source.close();
  }
}

function outcome(hosts: Record<Name, Host>): unknown {
  const first = names.find((name) => hosts[name].registry.length > 0);
  const contacted = (name: Name): boolean => hosts[name].registry.length > 0;
  return {
    upstreamContacted: contacted('upstream'),
    mirrorContacted: contacted('mirror'),
    serverContacted: contacted('server'),
    headersOnRegistryAndTokenServer: first && ownHeaders(first, hosts[first]) ? first : 'none',
  };
}

/** Whether every request had the headers of this host, and none of another. */
function ownHeaders(name: Name, { registry, tokens }: Host): boolean {
  const others = names.filter((other) => other !== name);
  return (
    tokens.length > 0 &&
    [...registry, ...tokens].every(
      (headers) =>
        headers['user-agent'] === name &&
        headers[`x-${name}-custom-1`] === `custom ${name} header` &&
        others.every((other) => headers[`x-${other}-custom-1`] === undefined),
    )
  );
}

/** A registry that requires a token and has an image. */
async function startHost(): Promise<Host> {
  const registry: IncomingHttpHeaders[] = [];
  const tokens: IncomingHttpHeaders[] = [];
  const tokenServer = createServer((request, response) => {
    tokens.push(request.headers);
    response.setHeader('content-type', 'application/json').end('{"token":"t"}');
  });
  const tokenAddress = await listen(tokenServer);
  const server = createServer((request, response) => {
    registry.push(request.headers);
    if (request.headers.authorization === undefined) {
      const challenge = `Bearer realm="http://${tokenAddress}/token",service="registry"`;
      response.writeHead(401, { 'www-authenticate': challenge }).end();
      return;
    }
    const manifest = JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.index.v1+json',
      manifests: [
        {
          mediaType: 'application/vnd.oci.image.manifest.v1+json',
          digest: `sha256:${'a'.repeat(64)}`,
          size: 2,
          platform: { os: 'linux', architecture: 'arm64' },
        },
      ],
    });
    response.setHeader('content-type', 'application/vnd.oci.image.index.v1+json').end(manifest);
  });
  const address = await listen(server);
  return {
    address,
    registry,
    tokens,
    close: () => Promise.all([stop(server), stop(tokenServer)]).then(() => undefined),
  };
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('no port');
  return `127.0.0.1:${address.port}`;
}

async function stop(server: Server): Promise<void> {
  if (!server.listening) return;
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
