/**
 * How to reach an API server: its address, trusted certificates and credentials. They are read again for each
 * request, because tokens and certificates change while the program runs.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { delimiter, join } from 'node:path';
import type { SecureContextOptions } from 'node:tls';
import { systemClock, type Clock } from '../../async/clock.ts';
import { secret, reveal, type Secret } from '../../telemetry/secret.ts';

export interface AccessNow {
  readonly tls: SecureContextOptions & {
    readonly servername?: string;
    readonly rejectUnauthorized?: boolean;
  };
  readonly authorization?: Secret;
}

export interface KubeAccess {
  /** Base URL, such as `https://10.96.0.1:443`. */
  readonly server: string;
  /** Namespace of the context or the service account. */
  readonly namespace: string;
  /** The name for people: `in cluster`, or the kubeconfig context. */
  readonly description: string;
  now(): Promise<AccessNow>;
  /** The server refused the credentials: `now` reads or makes new ones. */
  renew?(): void;
}

/** Directory where the kubelet mounts a pod's service account. */
const serviceAccountDir = '/var/run/secrets/kubernetes.io/serviceaccount';

/** client-go re-reads the projected token once a minute; the kubelet renews it well before it expires. */
const tokenReadIntervalMs = 60_000;

/**
 * Access by the service account of the pod that this process runs in.
 * @returns undefined outside of a cluster (no `KUBERNETES_SERVICE_HOST`)
 * @throws if the variables are set and the mounted files are not readable
 */
export async function inClusterAccess(
  env: Readonly<Record<string, string | undefined>>,
  { dir = serviceAccountDir, clock = systemClock }: { readonly dir?: string; readonly clock?: Clock } = {},
): Promise<KubeAccess | undefined> {
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443';
  if (host === undefined || host === '') return undefined;
  const namespace = (await readFile(join(dir, 'namespace'), 'utf8')).trim();
  let read: { readonly at: number; readonly access: AccessNow } | undefined;

  async function readFiles(): Promise<AccessNow> {
    const [token, ca] = await Promise.all([
      readFile(join(dir, 'token'), 'utf8'),
      readFile(join(dir, 'ca.crt'), 'utf8'),
    ]);
    return { tls: { ca }, authorization: secret(`Bearer ${token.trim()}`) };
  }

  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace,
    description: 'in cluster',
    now: async () => {
      const at = clock.monotonic();
      if (read === undefined || at - read.at >= tokenReadIntervalMs) read = { at, access: await readFiles() };
      return read.access;
    },
    renew: () => {
      read = undefined;
    },
  };
}

/**
 * Access by a kubeconfig, as in kubectl: client certificates, tokens, exec plugins and OIDC. The library is
 * large, so only its file for kubeconfigs is loaded, and only here.
 * @param options.path a kubeconfig file. Default: as in kubectl (`KUBECONFIG`, `~/.kube/config`)
 * @param options.context name of a context. Default: the current one
 * @returns `undefined` if there is no kubeconfig and none was named
 * @throws if a named file or context does not exist or is invalid
 */
export async function kubeconfigAccess(options: {
  readonly path?: string | undefined;
  readonly context?: string | undefined;
}): Promise<KubeAccess | undefined> {
  const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js');
  const files = kubeconfigFiles(options.path);
  if (files.length === 0 && options.context === undefined) return undefined;
  const load = (): InstanceType<typeof KubeConfig> => {
    const loaded = new KubeConfig();
    for (const file of files) {
      naming(file, () => {
        const one = new KubeConfig();
        one.loadFromFile(file);
        loaded.mergeConfig(one);
      });
    }
    return loaded;
  };
  let config = load();
  const name = options.context ?? config.getCurrentContext();
  const context = config.getContextObject(name);
  if (context === null) {
    if (options.context === undefined && options.path === undefined) return undefined;
    const known = config.getContexts().map((each) => each.name);
    const which = ['kubeconfig', ...files].join(' ');
    throw new Error(`${which} has no context ${name}; it has ${known.join(', ') || 'none'}`);
  }
  config.setCurrentContext(name);
  const cluster = config.getCurrentCluster();
  if (cluster === null) return undefined;
  return {
    server: cluster.server,
    namespace: context.namespace ?? 'default',
    description: `context ${name}`,
    now: async () => {
      const request: RequestOptions = {};
      await config.applyToHTTPSOptions(request);
      return fromRequest(request);
    },
    // A new configuration has no cached answers of exec plugins and token files.
    renew: () => {
      const renewed = load();
      // A file that is being written may be incomplete.
      if (renewed.getContextObject(name) === null) return;
      renewed.setCurrentContext(name);
      config = renewed;
    },
  };
}

/** kubectl's choice: the named file, those of `KUBECONFIG`, or the default one. */
function kubeconfigFiles(path: string | undefined): readonly string[] {
  if (path !== undefined) return [path];
  const { KUBECONFIG = '', HOME = '' } = process.env;
  if (KUBECONFIG !== '') return KUBECONFIG.split(delimiter).filter((file) => file !== '');
  const own = join(HOME, '.kube', 'config');
  return HOME !== '' && existsSync(own) ? [own] : [];
}

/** @throws an error with the file's name: the library's name none, and quote lines, which may have tokens */
function naming(file: string, load: () => void): void {
  try {
    load();
  } catch (error) {
    // Without its cause, which has the lines around the problem.
    // oxlint-disable-next-line preserve-caught-error
    throw new Error(`kubeconfig ${file} ${problemOf(error)}`);
  }
}

/** js-yaml's errors have a reason and a position. The library reads parsed fields without a check. */
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return 'cannot be read';
  if (error.message.startsWith('Duplicate ')) return `has a name of an earlier file: ${error.message}`;
  if ('code' in error)
    return error.code === 'ENOENT' ? 'does not exist' : `cannot be read: ${String(error.code)}`;
  const { reason, mark } = error as { reason?: unknown; mark?: { readonly line?: unknown } };
  if (typeof reason !== 'string') return 'is not a kubeconfig';
  const line = typeof mark?.line === 'number' ? ` in line ${mark.line + 1}` : '';
  return `is not YAML${line}: ${reason}`;
}

/** The parts of the library's request options for trust and identity, without its agent. */
function fromRequest(request: object): AccessNow {
  const given = request as Readonly<Record<string, unknown>>;
  const tls: Record<string, unknown> = {};
  for (const key of ['ca', 'cert', 'key', 'pfx', 'passphrase', 'servername', 'rejectUnauthorized']) {
    if (given[key] !== undefined && given[key] !== null) tls[key] = given[key];
  }
  const header = authorizationOf(given);
  return header === undefined ? { tls } : { tls, authorization: secret(header) };
}

function authorizationOf({ auth, headers }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof auth === 'string') return `Basic ${Buffer.from(auth).toString('base64')}`;
  const sent = (headers ?? {}) as Readonly<Record<string, unknown>>;
  const name = Object.keys(sent).find((each) => each.toLowerCase() === 'authorization') ?? '';
  const value = sent[name];
  return typeof value === 'string' ? value : undefined;
}

/** The header to send, or none. */
export function authorizationHeader(access: AccessNow): Readonly<Record<string, string>> {
  return access.authorization === undefined ? {} : { authorization: reveal(access.authorization) };
}
