/**
 * Image inspection on this machine: credential sources, endpoints, registry client and inspector. The agent, the webhook
 * without agents, `inspect` and `explain` are wired the same way from the same settings. Only the places of credentials
 * differ.
 */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { createContainerdEndpoints, type ContainerdEndpoints } from '../../daemon/containerd/endpoints.ts';
import { createCredentialProviderSource } from '../../daemon/kubelet/source.ts';
import { mayAskAnonymously, combineSources } from '../../src/credentials/sources/sources.ts';
import type { SourceProblem } from '../../src/credentials/credential.ts';
import {
  createDockerConfigSource,
  defaultDockerConfigPathCandidates,
  dockerLoginCandidates,
} from '../../src/credentials/docker/docker-config-file.ts';
import type { LiveCredentialSource } from '../../src/credentials/sources/file-source.ts';
import { createRegistryTomlSource } from '../../src/credentials/sources/registry-toml.ts';
import type { ImageFactsSource } from '../../src/images/facts/facts.ts';
import type { FreshnessSettings } from '../../src/images/memory/freshness.ts';
import { createRegistrySource } from '../../src/images/sources/registry-source.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { createRegistryClient } from '../../src/registry/client.ts';
import { createDefaultEndpoints, withNodeEndpoints } from '../../src/registry/endpoints/default-endpoints.ts';
import type { EndpointSource } from '../../src/registry/endpoints/endpoint.ts';
import { combineFingerprints } from '../../src/credentials/identity.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { openTokens } from './tokens.ts';

/**
 * Where docker configurations are read: the kubelet's paths (`node`), those and the user's docker login (`user`), or nowhere
 * (`none`: the webhook has no node).
 */
export type DockerConfigs = 'node' | 'user' | 'none';

export interface InspectionOptions {
  /** The live configuration. */
  readonly configuration: () => Configuration;
  readonly dockerConfigs: DockerConfigs;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  readonly metrics?: Metrics | undefined;
}

/** A credential source and where it looks. */
export interface OpenSource {
  readonly source: LiveCredentialSource;
  /** Directory or files, for messages. */
  readonly place: string;
}

export interface Inspection {
  readonly inspector: ImageFactsSource;
  /** In the order of precedence. */
  readonly sources: readonly OpenSource[];
  /** Sources, or parts of sources, that are ignored. */
  problems(): readonly SourceProblem[];
  /** A hash over credential and endpoint sources: equal for equal content, reveals no secret. */
  fingerprint(): string;
  close(): Promise<void>;
}

/** Opens the sources and creates the inspector. Close it at the end. */
export async function openInspection(options: InspectionOptions): Promise<Inspection> {
  const { configuration, log } = options;
  const first = configuration();
  const [found, containerd] = await Promise.all([openSources(options), openContainerd(options)]);
  const sources = [
    ...found,
    ...(containerd ? [{ source: containerd, place: containerd.description() }] : []),
  ];
  const credentials = combineSources(sources.map(({ source }) => source));
  const own = liveEndpoints(configuration);
  const endpoints = containerd ? withNodeEndpoints(own, containerd) : own;
  const registry = createRegistryClient({
    environment: options.env,
    hostRoot: first.hostRoot,
    caFiles: first.caFiles,
    perHost: first.maxRequestsPerRegistry,
    onProblem: (file, problem) => log.warn({ file, problem }, 'CA file ignored'),
  });
  const inspector = createRegistrySource({
    registry,
    endpoints,
    credentials,
    mayAskAnonymously: (repository) => mayAskAnonymously(repository, configuration().privateRegistries),
    freshness: liveFreshness(configuration),
  });
  return {
    inspector,
    sources,
    problems: () => credentials.problems(),
    fingerprint: () => combineFingerprints([credentials.fingerprint(), endpoints.fingerprint()]),
    close: async () => {
      registry.close();
      await Promise.all(sources.map(({ source }) => source.close()));
    },
  };
}

/** The cache times of the live configuration. */
export function liveFreshness(configuration: () => Configuration): FreshnessSettings {
  return {
    get ifNotPresentCacheTimeMs() {
      return configuration().ifNotPresentCacheTime;
    },
    get revalidateIntervalMs() {
      return configuration().revalidateInterval;
    },
    get pullAlwaysCacheTimeMs() {
      return configuration().pullAlwaysCacheTime;
    },
  };
}

/** Follows changes of `proxies` and `insecureRegistries`. */
function liveEndpoints(configuration: () => Configuration): EndpointSource {
  let made: { readonly from: Configuration; readonly source: EndpointSource } | undefined;
  function current(): EndpointSource {
    const from = configuration();
    if (made?.from !== from) {
      const { insecureRegistries } = from;
      const proxies: Record<string, string> = {};
      for (const { registry, endpoint } of from.proxies) proxies[registry] = endpoint;
      made = { from, source: createDefaultEndpoints({ proxies, insecureRegistries }) };
    }
    return made.source;
  }
  return {
    endpoints: (namespace) => current().endpoints(namespace),
    fingerprint: () => current().fingerprint(),
  };
}

/** Opens the sources in the order of precedence. */
async function openSources({
  configuration,
  dockerConfigs,
  env,
  log,
  metrics,
}: InspectionOptions): Promise<OpenSource[]> {
  const { credsDir, dockerConfigFile, dockerConfigPathCandidates: named, hostRoot: root } = configuration();
  const open: Promise<OpenSource>[] = [];
  if (credsDir !== undefined) {
    open.push(
      createRegistryTomlSource({ dir: credsDir, log, metrics }).then((source) => ({
        source,
        place: credsDir,
      })),
    );
  }
  if (dockerConfigFile !== undefined) {
    open.push(
      createDockerConfigSource({ candidates: [dockerConfigFile], log, metrics }).then((source) => ({
        source,
        place: dockerConfigFile,
      })),
    );
  }
  if (dockerConfigs !== 'none') {
    // A user's relative path is relative to the working directory, the kubelet's to the host root.
    const candidates = dockerConfigs === 'user' ? named?.map((path) => resolve(path)) : named;
    const places = (candidates ?? defaultDockerConfigPathCandidates).map((path) => join(root, path));
    open.push(
      createDockerConfigSource({ candidates, root, log, metrics }).then((source) => ({
        source,
        place: places.join(', '),
      })),
    );
  }
  if (dockerConfigs === 'user' && named === undefined) {
    const candidates = dockerLoginCandidates(env, homedir());
    open.push(
      createDockerConfigSource({ candidates, log, metrics }).then((source) => ({
        source,
        place: candidates.join(', '),
      })),
    );
  }
  if (dockerConfigs !== 'none') {
    open.push(...openPlugins({ configuration: configuration(), owner: dockerConfigs, env, log, metrics }));
  }
  return await Promise.all(open);
}

interface PluginsOptions extends Pick<InspectionOptions, 'env' | 'log' | 'metrics'> {
  readonly configuration: Configuration;
  readonly owner: 'user' | 'node';
}

/** The kubelet's credential provider plugins, if configured. */
function openPlugins({ configuration, owner, env, log, metrics }: PluginsOptions): Promise<OpenSource>[] {
  const { hostRoot, kubeletEnvironment: environment } = configuration;
  const named = configuration['kubeletConfig.config'] ?? configuration['kubeletConfig.configDir'];
  const namedBinDir = configuration['kubeletConfig.binDir'];
  if (named === undefined || namedBinDir === undefined) return [];
  const place = (path: string): string => (owner === 'user' ? resolve(path) : path);
  const config = place(named);
  const binDir = place(namedBinDir);
  async function made(): Promise<OpenSource> {
    const { close: onClose, ...tokens } = await openTokens(configuration, env, owner);
    const options = { hostRoot, config, binDir, environment, log, metrics, ...tokens, onClose };
    return { source: await createCredentialProviderSource(options), place: join(hostRoot, config) };
  }
  return [made()];
}

/** The node's containerd, unless there is no node or an empty list of paths disables it. */
async function openContainerd({
  configuration,
  dockerConfigs,
  log,
  metrics,
}: InspectionOptions): Promise<ContainerdEndpoints | undefined> {
  const {
    hostRoot,
    containerdConfigPathCandidates: candidates,
    containerdVersion: version,
  } = configuration();
  if (dockerConfigs === 'none' || candidates?.length === 0) return undefined;
  const mirrorCredentials = (): boolean => configuration().mirrorCredentials;
  return createContainerdEndpoints({ hostRoot, candidates, version, mirrorCredentials, log, metrics });
}
