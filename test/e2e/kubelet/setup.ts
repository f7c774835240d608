/**
 * Setups and pods in short notation. A setup is the files of a node and one run of its kubelet, which reads
 * most files once. A pod is a case: images to pull in order, and pull secrets.
 */
import { stringify } from 'yaml';

export interface Setup {
  readonly name: string;
  /** Root of the node's files for the agent: on the node, or mounted. */
  readonly hostRoot: '/' | '/host';
  /** Variables of the kubelet besides HOME and PATH. */
  readonly env: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
  readonly plugins?: Plugins;
  /** Service accounts besides `default`: name → annotations. */
  readonly accounts?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Whether the agent may request tokens of service accounts. */
  readonly serviceAccountTokens?: boolean;
  readonly pods: readonly PodCase[];
}

export interface Plugins {
  /** Path of the configuration, written under `files`. */
  readonly config: string;
  readonly isDirectory: boolean;
  /** Name → behavior of its program; a missing name has no program. */
  readonly behaviors: Readonly<Record<string, Behavior>>;
}

export interface Behavior {
  readonly stdout: string;
  readonly stderr?: string;
  readonly exit?: number;
  /** Whether this is a failure, after which the agent backs the plugin off. */
  readonly failing?: boolean;
  readonly wantsToken?: boolean;
  /** Its responses are cached per token. */
  readonly rememberedByToken?: boolean;
}

export interface PodCase {
  readonly name: string;
  /** Time to wait before it, until cached responses expire. */
  readonly afterMs?: number;
  readonly files?: Readonly<Record<string, string>>;
  readonly secrets: readonly PullSecret[];
  readonly images: readonly CaseImage[];
  readonly serviceAccount?: string;
}

export interface PullSecret {
  /** Without data the Secret does not exist. */
  readonly data?: Readonly<Record<string, string>>;
  readonly type?: string;
}

export interface CaseImage {
  /** As the pod writes it. */
  readonly image: string;
  readonly absent?: boolean;
}

export const binDir = '/opt/plugins/bin';
export const pluginConfig = '/etc/kubernetes/credential-providers';

/** All paths at which a setup may have docker configurations. */
export const dockerConfigs = [
  '/var/lib/kubelet/config.json',
  '/config.json',
  '/root/.docker/config.json',
  '/.docker/config.json',
  '/var/lib/kubelet/.dockercfg',
  '/.dockercfg',
  '/root/.dockercfg',
] as const;

/** User name and password as files write them. */
export interface Login {
  readonly username: string;
  readonly password: string;
}

/** Users of every registry. */
export const users: Readonly<Record<string, string>> = {
  alice: 'alice-secret',
  bob: 'bob-secret',
  carol: 'carol:with:colons',
  dave: 'pässwörd',
};

export function right(username: string): Login {
  return { username, password: users[username] ?? '' };
}

export function wrong(username: string): Login {
  return { username, password: 'wrong' };
}

export function entry({ username, password }: Login): { auth: string } {
  return { auth: Buffer.from(`${username}:${password}`).toString('base64') };
}

export function dockerConfig(auths: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ auths });
}

function entries(logins: Readonly<Record<string, Login>>): Record<string, { auth: string }> {
  return Object.fromEntries(Object.entries(logins).map(([key, login]) => [key, entry(login)]));
}

/** A pull secret of the usual type, with a whole `config.json`. */
function secretWith(text: string): PullSecret {
  return { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': text } };
}

export function pullSecret(logins: Readonly<Record<string, Login>>): PullSecret {
  return secretWith(dockerConfig(entries(logins)));
}

export const host = 'registry.example';

export function pod(name: string, images: readonly string[], secrets: readonly PullSecret[] = []): PodCase {
  return { name, secrets, images: images.map((image) => ({ image })) };
}

export function response(
  auth: Readonly<Record<string, Login>> | null,
  more: { readonly cacheKeyType?: string; readonly cacheDuration?: string; readonly version?: string } = {},
): string {
  const { cacheKeyType = 'Image', cacheDuration, version = 'v1' } = more;
  return JSON.stringify({
    kind: 'CredentialProviderResponse',
    apiVersion: `credentialprovider.kubelet.k8s.io/${version}`,
    cacheKeyType,
    ...(cacheDuration !== undefined && { cacheDuration }),
    auth,
  });
}

/** Responds with one login for a key. */
export function credentialsFor(
  key: string,
  login = right('alice'),
  more: Parameters<typeof response>[1] = {},
): Behavior {
  return { stdout: response({ [key]: login }, more) };
}

export interface Provider {
  readonly matchImages: readonly string[];
  readonly defaultCacheDuration?: string;
  readonly version?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly tokenAttributes?: Readonly<Record<string, unknown>>;
}

export interface WrittenAs {
  readonly version?: 'v1' | 'v1beta1' | 'v1alpha1';
  readonly format?: 'json' | 'yaml';
}

export function providersFile(
  providers: readonly (readonly [name: string, Provider])[],
  { version = 'v1', format = 'json' }: WrittenAs = {},
): string {
  const document = {
    apiVersion: `kubelet.config.k8s.io/${version}`,
    kind: 'CredentialProviderConfig',
    providers: providers.map(
      ([name, { matchImages, defaultCacheDuration = '0s', version = 'v1', args, env, tokenAttributes }]) => ({
        name,
        matchImages,
        defaultCacheDuration,
        apiVersion: `credentialprovider.kubelet.k8s.io/${version}`,
        ...(args && { args }),
        ...(env && { env: Object.entries(env).map(([name, value]) => ({ name, value })) }),
        ...(tokenAttributes && { tokenAttributes }),
      }),
    ),
  };
  return format === 'json' ? JSON.stringify(document) : stringify(document);
}

/** A plugin for patterns with spaces between them, and the behavior of its program. */
export function plugin(patterns: string, behavior: Behavior, more: Partial<Provider> = {}) {
  return { provider: { matchImages: patterns.split(' '), ...more }, behavior };
}

export function setup(
  name: string,
  plugins: Readonly<Record<string, ReturnType<typeof plugin>>>,
  pods: readonly PodCase[],
  more: Partial<Setup> & { readonly as?: WrittenAs } = {},
): Setup {
  const { as, files = {}, ...rest } = more;
  const all = Object.entries(plugins);
  const behaviors = Object.fromEntries(all.map(([each, { behavior }]) => [each, behavior]));
  const text = providersFile(
    all.map(([each, { provider }]) => [each, provider]),
    as,
  );
  return {
    name,
    hostRoot: '/host',
    env: {},
    plugins: { config: pluginConfig, isDirectory: false, behaviors },
    pods,
    ...rest,
    files: { ...files, [pluginConfig]: text },
  };
}
