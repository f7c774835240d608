/**
 * What is compared: setups and pods. A setup is the files of a node and one life of its kubelet, because the kubelet reads most
 * of them once; a pod is a case, with images that are pulled one after the other and with its pull secrets.
 */

export interface Setup {
  readonly name: string;
  /** Where the agent finds the node: it is the node, or has it mounted. */
  readonly hostRoot: '/' | '/host';
  /** Variables of the kubelet besides HOME and PATH. */
  readonly env: Readonly<Record<string, string>>;
  /** Path → content. */
  readonly files: Readonly<Record<string, string>>;
  readonly plugins?: Plugins;
  /** Service accounts besides `default`: name → annotations. */
  readonly accounts?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Whether the agent may ask for tokens of service accounts. */
  readonly serviceAccountTokens?: boolean;
  readonly pods: readonly PodCase[];
}

export interface Plugins {
  /** Path of the configuration, written under `files`. */
  readonly config: string;
  readonly isDirectory: boolean;
  /** How the program of each name behaves; without one there is no program. */
  readonly behaviors: Readonly<Record<string, Behavior>>;
}

export interface Behavior {
  readonly stdout: string;
  readonly stderr?: string;
  readonly exit?: number;
  /** Never ends. */
  readonly hangs?: boolean;
  /** Whether all this is a failure, after which the agent lets the plugin rest. */
  readonly failing?: boolean;
  /** Wants a token of the pod's service account. */
  readonly wantsToken?: boolean;
  /** What it answers is remembered for each token. */
  readonly rememberedByToken?: boolean;
}

export interface PodCase {
  readonly name: string;
  /** Time to pass before it, for what is remembered to expire. */
  readonly afterMs?: number;
  /** Files that change before it. */
  readonly files?: Readonly<Record<string, string>>;
  readonly secrets: readonly PullSecret[];
  readonly images: readonly CaseImage[];
  /** `default` where none is named. */
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
  /** The registry has no such tag. */
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

/** Users that every registry knows. */
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

/** An entry of a docker configuration. */
export function entry({ username, password }: Login): { auth: string } {
  return { auth: Buffer.from(`${username}:${password}`).toString('base64') };
}

/** A `config.json`. */
export function dockerConfig(auths: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ auths });
}

/** A pull secret of the usual type. */
export function pullSecret(logins: Readonly<Record<string, Login>>): PullSecret {
  const auths = Object.entries(logins).map(([key, login]) => [key, entry(login)]);
  return {
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': dockerConfig(Object.fromEntries(auths) as Record<string, unknown>) },
  };
}

/** What a plugin answers. */
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
