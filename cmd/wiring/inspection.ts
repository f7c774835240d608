/** Image inspection on this machine, wired alike for agent, webhook, `inspect` and `explain`. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { createContainerdEndpoints } from '../../daemon/containerd/endpoints.ts';
import { createCrio } from '../../daemon/crio/runtime.ts';
import { findRuntime, type FoundRuntime } from '../../daemon/find-runtime.ts';
import { openRuntimeProxies } from '../../daemon/systemd/runtime-proxies.ts';
import { createServiceAccountTokens } from '../../daemon/kubelet/provider/service-account.ts';
import {
  createCredentialProviderSource,
  type CredentialProviderSourceOptions,
} from '../../daemon/kubelet/source.ts';
import { mayAskAnonymously, combineSources } from '../../src/credentials/keyring/keyring.ts';
import {
  createDockerConfigSource,
  defaultDockerConfigPathCandidates,
  dockerLoginCandidates,
} from '../../src/credentials/docker/docker-config-file.ts';
import type { LiveCredentialSource } from '../../src/credentials/sources/file-source.ts';
import { createRegistryTomlSource } from '../../src/credentials/sources/registry-toml.ts';
import {
  createRegistrySource,
  type RegistrySourceOptions,
  createTagSource,
} from '../../src/images/sources/registry-source.ts';
import { compileRegistryLists } from '../../src/images/sources/registry-rules.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { createRegistryClient } from '../../src/registry/client.ts';
import { resolvesShortNames } from '../../src/nodes/node-report.ts';
import {
  createDefaultEndpoints,
  withNodeEndpoints,
  type EndpointSource,
} from '../../src/registry/endpoints/endpoint.ts';
import { hashOf } from '../../src/names/hash.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { openCredentialHelpers } from '../../daemon/credential-helpers.ts';
import { derived } from '../../src/policy/configuration/live.ts';
import { openKubernetes } from './kubernetes.ts';
import { messageOf } from '../../src/names/printable.ts';

/** `node`: the kubelet's docker configurations; `user`: also the docker login; `none`: there is no node. */
export type DockerConfigs = 'node' | 'user' | 'none';

export interface InspectionOptions {
  readonly configuration: () => Configuration;
  readonly dockerConfigs: DockerConfigs;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly metrics?: Metrics | undefined;
  /** Ends programs that run for a person's command. */
  readonly stop?: AbortSignal | undefined;
}

const forPeople = 'log in with docker login, set --docker-config-file, or give the pod a pull secret';

export interface OpenSource {
  readonly source: LiveCredentialSource;
  readonly place: string;
}

/** Opens the credentials and creates the source of image facts. Close it at the end. */
export async function openInspection(options: InspectionOptions) {
  const { configuration, log } = options;
  const first = configuration();
  const { hostRoot } = first;
  const found: FoundRuntime =
    first.runtime === 'auto'
      ? await findRuntime(hostRoot)
      : { name: first.runtime, reason: 'the setting runtime says so' };
  // A person's machine and the webhook have the proxies of their own process.
  const isNode = options.dockerConfigs === 'node';
  const [sources, runtime, proxies] = await Promise.all([
    openSources(options),
    openRuntime(options, found),
    isNode ? openRuntimeProxies({ hostRoot, runtime: found.name, own: options.env, log }) : undefined,
  ]);
  if (runtime) sources.push({ source: runtime, place: runtime.description() });
  const credentials = combineSources(sources.map(({ source }) => source));
  const own = liveEndpoints(configuration);
  const endpoints = runtime ? withNodeEndpoints(own, runtime) : own;
  const report = () => runtime?.report() ?? {};
  const registry = createRegistryClient({
    environment: proxies?.environment ?? options.env,
    hostRoot,
    caFiles: first.caFiles,
    onProblem: (file, problem) => log.warn({ file, problem }, 'CA file ignored'),
    metrics: options.metrics,
  });
  const inLists = derived(configuration, compileRegistryLists);
  const access: RegistrySourceOptions = {
    registry,
    endpoints,
    credentials,
    missingCredential: options.dockerConfigs === 'user' ? forPeople : undefined,
    mayAskAnonymously: (repository) => mayAskAnonymously(repository, configuration().privateRegistries),
    forbidden: (name) => inLists()(name),
  };
  return {
    source: createRegistrySource(access),
    tags: createTagSource(access),
    /** Sources in the order of precedence. */
    sources,
    /** The node's runtime, if its configuration is read. */
    runtime: report,
    foundRuntime: found,
    /** Whether the node's runtime finds the registries of short names by itself. */
    resolvesShortNames: () => resolvesShortNames(report()),
    /** Sources, or parts of sources, that are ignored. */
    problems: () => credentials.problems(),
    dockerHubLimit: () => registry.dockerHubLimit(),
    /** A hash over credential and endpoint sources: equal for equal content, reveals no secret. */
    fingerprint: () => {
      const ofSources = hashOf(sources.flatMap(({ source }) => [source.name, source.fingerprint()]));
      const parts = [ofSources, endpoints.fingerprint(), proxies?.fingerprint()];
      return hashOf(parts.filter((part) => part !== undefined));
    },
    proxies,
    close: async () => {
      registry.close();
      await Promise.all([...sources.map(({ source }) => source.close()), proxies?.close()]);
    },
  };
}

/** Follows changes of `proxies` and `insecureRegistries`. */
function liveEndpoints(configuration: () => Configuration): EndpointSource {
  const current = derived(configuration, ({ proxies, insecureRegistries }) =>
    createDefaultEndpoints({
      proxies: Object.fromEntries(proxies.map(({ registry, endpoint }) => [registry, endpoint])),
      insecureRegistries,
    }),
  );
  return {
    endpoints: (target) => current().endpoints(target),
    fingerprint: () => current().fingerprint(),
  };
}

async function openSources(options: InspectionOptions): Promise<OpenSource[]> {
  const { configuration, dockerConfigs, env, log, metrics, stop } = options;
  const { credsDir, credsFiles, dockerConfigFile, hostRoot: root } = configuration();
  const { dockerConfigPathCandidates: named } = configuration();
  const opening: Promise<OpenSource>[] = [];
  function add(place: string, opened: Promise<LiveCredentialSource>): void {
    opening.push(opened.then((source) => ({ source, place })));
  }
  if (credsDir !== undefined) {
    add(credsDir, createRegistryTomlSource({ dir: credsDir, expected: credsFiles, log, metrics }));
  }
  if (dockerConfigFile !== undefined) {
    const candidates = [dockerConfigFile];
    add(dockerConfigFile, createDockerConfigSource({ candidates, isRequired: true, log, metrics }));
  }
  const isLoginUsed = dockerConfigs === 'user' && named === undefined;
  const logins = dockerLoginCandidates(env, homeDirectory());
  // Helpers come before the files, which have an empty entry, an anonymous attempt, for a login in a helper.
  for (const file of isLoginUsed ? logins : []) {
    add(`credential helpers in ${file}`, openCredentialHelpers({ file, env, log, stop }));
  }
  if (dockerConfigs !== 'none') {
    // A user's relative path is relative to the working directory, the kubelet's to the host root.
    const candidates = dockerConfigs === 'user' ? named?.map((path) => resolve(path)) : named;
    const places = (candidates ?? defaultDockerConfigPathCandidates).map((path) => join(root, path));
    // A person names a file that is there; nodes may differ.
    const isRequired = dockerConfigs === 'user' && named !== undefined;
    add(places.join(', '), createDockerConfigSource({ candidates, isRequired, root, log, metrics }));
  }
  if (isLoginUsed) add(logins.join(', '), createDockerConfigSource({ candidates: logins, log, metrics }));
  const paths = pluginPathsOf(options);
  if (paths) add(join(root, paths.config), openPlugins(options, paths));
  return await Promise.all(opening);
}

/** `/` for a user without a home directory, as in containers: an unknown id, and no variable HOME. */
export function homeDirectory(): string {
  try {
    return homedir();
  } catch {
    return '/';
  }
}

type PluginPaths = Pick<CredentialProviderSourceOptions, 'config' | 'binDir'>;

function pluginPathsOf({ configuration, dockerConfigs }: InspectionOptions): PluginPaths | undefined {
  const settings = configuration();
  const { 'kubeletConfig.config': file, 'kubeletConfig.configDir': dir } = settings;
  // A relative file is one in the directory.
  const config = file !== undefined && dir !== undefined ? join(dir, file) : (file ?? dir);
  const binDir = settings['kubeletConfig.binDir'];
  if (dockerConfigs === 'none' || config === undefined || binDir === undefined) return undefined;
  return dockerConfigs === 'user' ? { config: resolve(config), binDir: resolve(binDir) } : { config, binDir };
}

async function openPlugins(options: InspectionOptions, paths: PluginPaths): Promise<LiveCredentialSource> {
  const { configuration, log, metrics } = options;
  const { hostRoot, kubeletEnvironment: environment } = configuration();
  const tokens = await openTokens(options);
  return createCredentialProviderSource({ hostRoot, ...paths, environment, log, metrics, ...tokens });
}

/** Tokens for the plugins. A failed connection is only reported: the agent has other sources too. */
async function openTokens({
  configuration,
  dockerConfigs,
  env,
}: InspectionOptions): Promise<Pick<CredentialProviderSourceOptions, 'tokens' | 'noTokens' | 'onClose'>> {
  const settings = configuration();
  if (!settings.serviceAccountTokens) return { noTokens: 'serviceAccountTokens is off' };
  try {
    const fallBack = dockerConfigs === 'user' ? 'own kubeconfig' : 'none';
    const kubernetes = await openKubernetes(settings, env, fallBack);
    if (kubernetes === undefined) {
      return { noTokens: 'serviceAccountTokens is on, but this is not a pod and no kubeconfig is set' };
    }
    const { client } = kubernetes;
    return { tokens: createServiceAccountTokens(client), onClose: () => client.close() };
  } catch (error) {
    return { noTokens: `cannot connect to the cluster: ${messageOf(error)}` };
  }
}

/** The node's container runtime, unless there is no node, or an empty list of paths disables containerd. */
async function openRuntime(
  { configuration, dockerConfigs, log, metrics }: InspectionOptions,
  { name }: FoundRuntime,
) {
  const {
    hostRoot,
    containerdConfigPathCandidates: candidates,
    containerdVersion: version,
  } = configuration();
  if (dockerConfigs === 'none') return undefined;
  if (name === 'cri-o') return createCrio({ hostRoot, log, metrics });
  if (candidates?.length === 0) return undefined;
  const mirrorCredentials = (): boolean => configuration().mirrorCredentials;
  return createContainerdEndpoints({ hostRoot, candidates, version, mirrorCredentials, log, metrics });
}
