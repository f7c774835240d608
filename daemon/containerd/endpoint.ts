/**
 * Makes endpoints of hosts: filters headers, and adds the credentials of config.toml. The settings of one host
 * never reach another.
 */
import type { MatchedCredential } from '../../src/credentials/credential.ts';
import { credentialId } from '../../src/credentials/identity.ts';
import { isLoginHeader } from '../../src/http/client.ts';
import type { Endpoint } from '../../src/registry/endpoints/endpoint.ts';
import { reveal, secret } from '../../src/telemetry/secret.ts';
import { parseAuth } from './config/registry.ts';
import { InvalidConfig } from '../toml.ts';
import { defaultHostName, type EffectiveHost } from './hosts/effective-hosts.ts';
import type { Header } from './hosts/hosts-file.ts';
import type { NodeConfig } from './node.ts';

export interface EndpointContext {
  readonly node: NodeConfig;
  readonly namespace: string;
  readonly hosts: readonly EffectiveHost[];
  readonly origin: string;
  /** The hosts are for every namespace without a directory of its own. */
  readonly forAll: boolean;
  /** Mirrors receive the credentials of the registry that they mirror. */
  readonly mirrorCredentials: boolean;
}

/** containerd's default for dialing; a longer `dial_timeout` is cut to it. */
const maxDialMs = 30_000;

/** Set by the HTTP client. Go drops the first four too; others could break or smuggle a request. */
const neverSent: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'trailer',
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'expect',
  'te',
  'accept',
  'accept-encoding',
  'content-type',
]);

/** Skips hosts without a valid URL, as containerd fails there. */
export function endpointsOf(context: EndpointContext): readonly Endpoint[] {
  const made = context.hosts.map((host) => makeEndpoint(host, host === context.hosts.at(-1), context));
  return made.filter((endpoint) => endpoint !== undefined);
}

function makeEndpoint(host: EffectiveHost, isLast: boolean, context: EndpointContext): Endpoint | undefined {
  const { namespace, node } = context;
  const base = baseOf(host);
  if (base === undefined) return undefined;
  const { forAll, forHost } = headersFor(host, context);
  const own = ownCredential(host.host, node);
  return {
    base,
    host: host.host,
    namespace,
    namespaceParameter: wantsNamespace(host.host, namespace),
    httpFallback: host.httpFallback,
    resolve: host.capabilities.includes('resolve'),
    pull: host.capabilities.includes('pull'),
    tls: { ca: [], client: [], ...host.certificates, skipVerify: host.skipVerify === true },
    headers: [...forAll, ...forHost],
    // The transfer service sends headers for every registry to registries only, not to token servers.
    ...(node.rules.tokenHeaders && { tokenHeaders: node.localPull ? [...forAll, ...forHost] : forHost }),
    // 0 means no limit in Go; the HTTP client's own limit stays.
    ...(host.dialTimeoutMs !== undefined &&
      host.dialTimeoutMs !== 0 && { dialTimeoutMs: Math.min(Math.max(host.dialTimeoutMs, 1), maxDialMs) }),
    acceptsCredentials: isLast || context.mirrorCredentials,
    ...(own && { ownCredential: own }),
    origin: host.isDefault ? 'default' : context.origin,
  };
}

/** Whether `ns` is sent: to every host but the namespace's own (`RegistryHost.isProxy`). */
export function wantsNamespace(host: string, namespace: string): boolean {
  return host !== namespace && host !== defaultHostName(namespace);
}

/** The prefix of request URLs; undefined if it is not a valid URL. */
export function baseOf({
  scheme,
  host,
  path,
}: Pick<EffectiveHost, 'scheme' | 'host' | 'path'>): string | undefined {
  if ((scheme !== 'http' && scheme !== 'https') || host === '') return undefined;
  const url = URL.parse(`${scheme}://${host}`);
  if (!url) return undefined;
  url.pathname = path;
  return url.href.replace(/\/+$/, '');
}

/**
 * Headers of config.toml, for every registry, and headers of the host. The author of a pod chooses the
 * default host by the name of the image, so that host receives no headers of a file for every namespace, and
 * no login headers of config.toml.
 */
function headersFor(host: EffectiveHost, { node, forAll }: EndpointContext) {
  const everywhere = node.registry.headers.filter(({ name }) => !(host.isDefault && isLoginHeader(name)));
  return { forAll: sendable(everywhere), forHost: host.isDefault && forAll ? [] : sendable(host.headers) };
}

function sendable(headers: readonly Header[]): Header[] {
  return headers
    .filter(({ name }) => !neverSent.has(name.trim().toLowerCase()))
    .map(({ name, value }) => {
      // Go writes headers in UTF-8; Node writes one byte for each character.
      const bytes = Buffer.from(reveal(value), 'utf8').toString('latin1');
      return { name, value: secret(bytes) };
    });
}

/** `configs."<host>".auth`, for the host of the request, in every namespace. */
function ownCredential(
  host: string,
  { registry, configFile = '' }: NodeConfig,
): MatchedCredential | undefined {
  try {
    const credential = parseAuth(registry.configs.get(host)?.auth ?? {});
    if (!credential) return undefined;
    return { credential, source: 'containerd', key: host, origin: configFile, id: credentialId(credential) };
  } catch (error) {
    // `readNodeConfig` reports it.
    if (error instanceof InvalidConfig) return undefined;
    throw error;
  }
}
