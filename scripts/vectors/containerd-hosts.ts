/** Handlers of hosts_toml.json. See `handler.ts` for the convention. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigFileError, InvalidConfig } from '../../daemon/toml.ts';
import { baseOf, wantsNamespace, effectiveHosts } from '../../daemon/containerd/endpoint.ts';
import {
  findHostDirectory,
  loadHostDirectories,
  loadHostDirectory,
} from '../../daemon/containerd/hosts/host-directory.ts';
import { NodeFiles } from '../../daemon/node-files.ts';
import { parseHostsFile, type HostConfig } from '../../daemon/containerd/hosts/hosts-file.ts';
import { hostWithDefaults } from './upstream/host-defaults.ts';
import { matchLocalhost } from './upstream/match-localhost.ts';
import { rulesFor } from '../../daemon/containerd/config/rules.ts';
import { eligible } from '../../src/registry/client.ts';
import { objectUrl } from '../../src/registry/lookup-at-endpoint.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { resolveWithHostsDir } from './containerd-resolver.ts';
import { inDirectory, write } from './directory.ts';
import { notCompared, type Handlers, type Input } from './handler.ts';
import { list, object, text, texts } from './input.ts';

/** The newest version; the vectors note differences of older ones. */
const rules = rulesFor();

export const containerdHosts: Handlers = {
  parse_hosts_file: (input) => {
    try {
      return { ok: true, hosts: parse(input).map((host) => shown(host)) };
    } catch (error) {
      if (!(error instanceof InvalidConfig)) throw error;
      // Messages of containerd quote values, which may be secrets.
      return { ok: false, error: notCompared };
    }
  },

  parse_hosts_file_item: (input) => {
    const host = parse(input)[Number(input['index'])];
    return host && shown(host);
  },

  effective_hosts: (input) =>
    inDirectory(async (dir) => {
      const namespace = text(input, 'namespace');
      const toml = input['toml'];
      if (typeof toml === 'string') await write(join(dir, namespace, 'hosts.toml'), toml);
      const load = () => loadHostDirectory(join(dir, namespace), rules, new NodeFiles('/'));
      const configured = typeof toml === 'string' ? (await load()).hosts : undefined;
      const hosts = effectiveHosts(configured, namespace, rules);
      return {
        hosts: hosts.map((host) => {
          const { skipVerify: _, ...rest } = shown(host);
          return typeof toml === 'string' ? { ...rest, httpFallback: host.httpFallback } : rest;
        }),
      };
    }),

  http_fallback: (input) => {
    const scheme = schemeOf(input['defaultScheme']);
    if (scheme) return hostWithDefaults(text(input, 'host'), scheme, input['defaultTLS'] !== null);
    const [host] = effectiveHosts(undefined, text(input, 'host'), rules);
    return { scheme: host?.scheme, httpFallback: host?.httpFallback };
  },

  default_host: (input) => {
    const [host] = effectiveHosts(undefined, text(input, 'namespace'), rules);
    return host && { ...shown(host), httpFallback: host.httpFallback, skipVerify: host.skipVerify === true };
  },

  load_host_dir: (input) =>
    inDirectory(async (dir) => {
      for (const [name, content] of Object.entries(object(input, 'files')))
        await write(join(dir, name), String(content));
      const { hosts } = await loadHostDirectory(dir, rules, new NodeFiles('/'));
      return { hosts: hosts.map((host) => shown(host, (path) => path.replace(dir, '$DIR'))) };
    }),

  host_dir_lookup: (input) =>
    inDirectory(async (dir) => {
      for (const name of texts(input, 'directories')) await mkdir(join(dir, name), { recursive: true });
      for (const name of texts(input, 'files')) await write(join(dir, name), '');
      const roots = texts(input, 'roots').map((root) => join(dir, root));
      const directories = await loadHostDirectories(roots, rules, new NodeFiles('/'), new Map());
      try {
        const found = findHostDirectory(directories, roots, text(input, 'namespace'));
        return { dir: found?.dir.slice(dir.length + 1) ?? null };
      } catch (error) {
        if (!(error instanceof ConfigFileError)) throw error;
        return { dir: error.where.slice(dir.length + 1) };
      }
    }),

  resolver_with_hosts_dir: resolveWithHostsDir,

  match_localhost: (input) => ({ match: matchLocalhost(text(input, 'host')) }),

  // Endpoints look up single capabilities in the list.
  has_capability: () => notCompared,

  request_url: (input) => {
    const namespace = text(input, 'namespace');
    const host = object(input, 'host');
    const place = { scheme: text(host, 'scheme'), host: text(host, 'host'), path: text(host, 'path') };
    const base = baseOf(place);
    const kind = text(input, 'kind') === 'blobs' ? 'blobs' : 'manifests';
    const namespaceParameter = wantsNamespace(place.host, namespace);
    const url =
      base &&
      objectUrl(
        { base, namespace, namespaceParameter },
        text(input, 'repository'),
        kind,
        text(input, 'object'),
      );
    return { url: url ? url.href : null };
  },

  filter_hosts: (input) => {
    const hosts = list(input, 'hosts').map((held, index) => {
      const can = (capability: string): boolean => Array.isArray(held) && held.includes(capability);
      return { index, pull: can('pull'), resolve: can('resolve') };
    });
    const reference = text(input, 'reference') === 'digest' ? `sha256:${'0'.repeat(64)}` : 'latest';
    return { resolveHosts: eligible(hosts, reference).map(({ index }) => index) };
  },
};

function parse(input: Input): HostConfig[] {
  return parseHostsFile(text(input, 'baseDir'), text(input, 'toml'), rules);
}

/** A host in the shape of the vectors, without empty fields. */
function shown(host: HostConfig, path: (file: string) => string = (file) => file): Record<string, unknown> {
  const { scheme, capabilities: held, ca = [], client = [], skipVerify, headers, dialTimeoutMs } = host;
  const header: Record<string, string[]> = {};
  for (const { name, value } of headers) (header[name] ??= []).push(reveal(value));
  return {
    scheme,
    host: host.host,
    path: host.path,
    capabilities: held,
    ...(ca.length > 0 && { ca: ca.map(path) }),
    ...(client.length > 0 && { client: client.map((pair) => pair.map(path)) }),
    ...(skipVerify !== undefined && { skipVerify }),
    ...(headers.length > 0 && { header }),
    ...(dialTimeoutMs !== undefined && { dialTimeoutMs }),
  };
}

function schemeOf(value: unknown): 'http' | 'https' | undefined {
  return value === 'http' || value === 'https' ? value : undefined;
}
