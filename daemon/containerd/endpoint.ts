/**
 * From hosts to endpoints: certificates are read, headers are looked through, and credentials of config.toml are put beside the hosts
 * that they are for. What a file says of a host never reaches another one.
 */
import type { MatchedCredential } from '../../src/credentials/credential.ts';
import { credentialId } from '../../src/credentials/identity.ts';
import type { Endpoint } from '../../src/registry/endpoints/endpoint.ts';
import { isLoginHeader } from '../../src/http/login-headers.ts';
import { reveal, secret } from '../../src/telemetry/secret.ts';
import { AuthInvalid, parseAuth } from './config/auth.ts';
import { readTls } from './hosts/certificates.ts';
import { defaultHostName, type EffectiveHost } from './hosts/host-defaults.ts';
import { hasCapabilities, type Header } from './hosts/hosts-file.ts';
import type { Registry } from './config/registry.ts';
import type { ContainerdRules } from './config/rules.ts';

export interface EndpointContext {
  readonly namespace: string;
  readonly rules: ContainerdRules;
  /** Directory that stands for `/`. */
  readonly hostRoot?: string | undefined;
  /** File that the hosts come from. */
  readonly origin: string;
  /** config.toml, for what it says of a host. */
  readonly configFile: string;
  readonly registry: Pick<Registry, 'headers' | 'configs'>;
  /** Whether the hosts are those of every namespace without a directory of its own. */
  readonly forAll: boolean;
  /** Images are pulled by containerd's client, not by its transfer service. */
  readonly localPull: boolean;
  /** Whether mirrors get the credentials of what they mirror. */
  readonly mirrorCredentials: boolean;
}

/** The longest that a dial may take, which is also containerd's default. */
const maxDialMs = 30_000;

/**
 * Headers that are about a connection or a body, which are ours: Go leaves out the first four too, the rest would break an
 * exchange or smuggle another one into it.
 */
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

/**
 * Makes endpoints of hosts, in their order. Hosts that no request can be sent to are left out, as containerd's request would fail.
 * @throws HostFilesError where a certificate of any of them cannot be used
 */
export async function endpointsOf(
  hosts: readonly EffectiveHost[],
  context: EndpointContext,
): Promise<Endpoint[]> {
  const made = await Promise.all(
    hosts.map((host, index) => makeEndpoint(host, index === hosts.length - 1, context)),
  );
  return made.filter((endpoint) => endpoint !== undefined);
}

async function makeEndpoint(
  host: EffectiveHost,
  isLast: boolean,
  context: EndpointContext,
): Promise<Endpoint | undefined> {
  const { namespace, rules } = context;
  const tls = await readTls(host, context.hostRoot);
  const base = baseOf(host);
  if (base === undefined) return undefined;
  const { everywhere, hosts } = headersFor(host, context);
  const own = ownCredential(host.host, context);
  return {
    base,
    host: host.host,
    namespace,
    namespaceParameter: wantsNamespace(host.host, namespace),
    httpFallback: host.httpFallback,
    resolve: hasCapabilities(host.capabilities, ['resolve']),
    pull: hasCapabilities(host.capabilities, ['pull']),
    tls,
    headers: [...everywhere, ...hosts],
    // The transfer service keeps what is for every registry to the registries.
    ...(rules.tokenHeaders && { tokenHeaders: context.localPull ? [...everywhere, ...hosts] : hosts }),
    // 0 is no limit in Go; ours stays.
    ...(host.dialTimeoutMs !== undefined &&
      host.dialTimeoutMs !== 0 && { dialTimeoutMs: Math.min(Math.max(host.dialTimeoutMs, 1), maxDialMs) }),
    acceptsCredentials: isLast || context.mirrorCredentials,
    ...(own && { ownCredential: own }),
    origin: host.isDefault ? 'default' : context.origin,
  };
}

/** Whether a host is told for which namespace it is asked: every host but the namespace's own (`RegistryHost.isProxy`). */
export function wantsNamespace(host: string, namespace: string): boolean {
  return host !== namespace && host !== defaultHostName(namespace);
}

/** URL that requests begin with; undefined where there is none. */
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
 * Headers of config.toml, which are for every registry, and those of the host. Whoever names an image names its default host: that
 * one gets no header of a file that is for every namespace, and none of config.toml that logs in.
 */
function headersFor(host: EffectiveHost, { registry, forAll }: EndpointContext) {
  const everywhere = host.isDefault
    ? registry.headers.filter(({ name }) => !isLoginHeader(name))
    : registry.headers;
  return { everywhere: sendable(everywhere), hosts: host.isDefault && forAll ? [] : sendable(host.headers) };
}

function sendable(headers: readonly Header[]): Header[] {
  return headers
    .filter(({ name }) => !neverSent.has(name.trim().toLowerCase()))
    .map(({ name, value }) => ({ name, value: secret(asBytes(reveal(value))) }));
}

/** Go writes UTF-8 into headers where Node writes one byte for each character. */
function asBytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** `configs."<host>".auth`, which counts for the host that is asked, whatever namespace it serves. */
function ownCredential(
  host: string,
  { registry: { configs }, configFile }: EndpointContext,
): MatchedCredential | undefined {
  const auth = configs.get(host)?.auth;
  if (!auth) return undefined;
  try {
    const credential = parseAuth(auth, host);
    if (!credential) return undefined;
    return { credential, source: 'containerd', key: host, origin: configFile, id: credentialId(credential) };
  } catch (error) {
    // Told once for the whole file by whoever reads it.
    if (error instanceof AuthInvalid) return undefined;
    throw error;
  }
}
