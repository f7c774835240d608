/**
 * The endpoints of a registry namespace as the node's containerd would use them, with its certificates,
 * headers and credentials. All of it comes from the node's own files below the host root:
 *
 *   config.toml and its imports (`config.ts`) → registry settings (`registry.ts`) → `config_path`
 *   → the namespace's directory (`host-directory.ts`) → hosts.toml (`hosts-file.ts`) or certificate files
 *   → hosts with defaults, or the deprecated mirrors (`effective-hosts.ts`) → endpoints (`endpoint.ts`)
 *
 * Versions of containerd differ in all of it (`rules.ts`); `find-version.ts` runs the node's program.
 * config.toml is read and watched (`node.ts`); the directory of a namespace is read for each lookup; after
 * each change, all of it is read for the fingerprint (`scan.ts`). docs/internals/deviations.md lists the
 * intended differences from containerd.
 */
import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import type { Problem, SourceProblem } from '../../src/credentials/credential.ts';
import { combineFingerprints, textFingerprint } from '../../src/credentials/identity.ts';
import { newProblems } from '../../src/credentials/problems.ts';
import type { LiveCredentialSource } from '../../src/credentials/sources/file-source.ts';
import { bindSourceMetrics, type SourceMeter } from '../../src/credentials/sources/metrics.ts';
import { FileError } from '../../src/files/read.ts';
import { liveContent, type LiveContent } from '../../src/files/live.ts';
import type { SourcePart } from '../../src/files/source-part.ts';
import { DirectoryWatcher, type WatchOptions } from '../../src/files/watch.ts';
import { runtimeOf, type NodeReport } from '../../src/nodes/node-report.ts';
import type { Endpoint, EndpointSource } from '../../src/registry/endpoints/endpoint.ts';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import type { Log } from '../../src/telemetry/log.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import {
  createVersionFinder,
  defaultConfigPathCandidates,
  type VersionFinder,
} from './config/find-version.ts';
import { rulesFor } from './config/rules.ts';
import { ConfigFileError, InvalidConfig } from '../toml.ts';
import { describeParts, scanHosts, type HostDirectoryFound } from './scan.ts';
import { endpointsOf, type EndpointContext } from './endpoint.ts';
import { effectiveHosts, mirrorHosts } from './hosts/effective-hosts.ts';
import {
  createHostFilesReader,
  defaultDirectory,
  findHostDirectory,
  type HostFilesReader,
} from './hosts/host-directory.ts';
import { filesOfCandidate, readNodeConfig, type NodeConfig } from './node.ts';

export interface ContainerdEndpointsOptions extends Omit<WatchOptions, 'root'> {
  /** Directory that stands for `/`. */
  readonly hostRoot: string;
  /** Paths of config.toml; the first that exists counts. Default: the paths of known distributions. */
  readonly candidates?: readonly string[] | undefined;
  /** Version of containerd. Default: the output of the node's program. */
  readonly version?: string | undefined;
  /** Whether mirrors receive the credentials of the registry that they mirror; called for each lookup. */
  readonly mirrorCredentials?: (() => boolean) | undefined;
  readonly metrics?: Metrics | undefined;
}

interface State {
  readonly node: NodeConfig;
  readonly problems: readonly SourceProblem[];
  readonly usable: readonly HostDirectoryFound[];
  readonly id: string;
  readonly fingerprint: string;
}

/** Each watched directory costs a system handle. */
const maxWatched = 200;

const noConfig: NodeConfig = {
  configFile: undefined,
  files: [],
  version: undefined,
  rules: rulesFor(),
  registry: { configPath: '', mirrors: new Map(), configs: new Map(), auths: new Map(), headers: [] },
  roots: [],
  localPull: false,
  servesKubelet: true,
  problems: [],
};

export async function createContainerdEndpoints(
  options: ContainerdEndpointsOptions,
): Promise<ContainerdEndpoints> {
  const endpoints = new ContainerdEndpoints(options);
  await endpoints.start();
  return endpoints;
}

/**
 * Endpoints, and containerd as a credential source, for descriptions and fingerprints. Lookups of the source
 * are empty: containerd's credentials belong to hosts, so each endpoint has its own
 * (`Endpoint.ownCredential`).
 */
export class ContainerdEndpoints implements EndpointSource, LiveCredentialSource {
  readonly name = 'containerd';
  readonly #options: ContainerdEndpointsOptions;
  readonly #candidates: readonly string[];
  readonly #log: Log | undefined;
  readonly #meter: SourceMeter;
  readonly #stop = new AbortController();
  readonly #findVersion: VersionFinder;
  readonly #readHosts: HostFilesReader;
  #state: State | undefined;
  #live: LiveContent<State> | undefined;
  /** Watches the directories that are found by reading; `#live` watches those of the candidates. */
  #watched: { readonly dirs: string; readonly watcher: DirectoryWatcher } | undefined;

  constructor(options: ContainerdEndpointsOptions) {
    this.#options = options;
    this.#candidates = options.candidates?.flatMap(filesOfCandidate) ?? defaultConfigPathCandidates;
    this.#log = options.log?.child({ endpointSource: 'containerd' });
    this.#meter = bindSourceMetrics(options.metrics, 'containerd');
    this.#findVersion = createVersionFinder(options.hostRoot, this.#stop.signal);
    this.#readHosts = createHostFilesReader(options.hostRoot);
  }

  async start(): Promise<void> {
    this.#live = await liveContent<State>({
      ...this.#options,
      root: this.#options.hostRoot,
      dirs: [...new Set(this.#candidates.map((path) => dirname(path)))],
      read: () => this.#read(),
      fingerprint: ({ id }) => id,
      onRead: (state) => this.#meter.read(state?.problems.length === 0),
      onProblem: (error) =>
        this.#log?.warn(
          { err: error },
          'reading containerd’s configuration failed, the last one stays in force',
        ),
    });
  }

  async endpoints(namespace: string): Promise<readonly Endpoint[]> {
    const node = this.#node;
    const { hostRoot } = this.#options;
    const mirrorCredentials = this.#options.mirrorCredentials?.() ?? true;
    try {
      const found = await this.#hostsFor(namespace, node);
      return await endpointsOf({ ...found, node, namespace, hostRoot, mirrorCredentials });
    } catch (error) {
      const known =
        error instanceof ConfigFileError || error instanceof FileError || error instanceof InvalidConfig;
      if (!known) throw error;
      // containerd's pull would fail before any request, for example for an unreadable CA file.
      const message = `the node's containerd cannot pull from ${namespace}: ${error.message}`;
      throw new RegistryError('unavailable', namespace, message, { cause: error });
    }
  }

  lookup(): Promise<readonly never[]> {
    return Promise.resolve([]);
  }

  fingerprint(): string {
    return this.#state?.fingerprint ?? combineFingerprints(['containerd']);
  }

  /** Settings that are left out, or that would make containerd's pulls fail. */
  problems(): readonly SourceProblem[] {
    const failure = this.#live?.problem();
    const found = this.#state?.problems ?? [];
    if (failure === undefined) return found;
    const origin = this.#candidates.join(', ');
    return [...found, { source: this.name, origin, message: failure.message }];
  }

  description(): string {
    const { configFile = 'no config.toml', version, roots, localPull } = this.#node;
    const hosts = roots.length > 0 ? `, hosts in ${roots.join(localPull ? ', ' : '')}` : '';
    return `${configFile} of containerd ${version ?? 'of an unknown version, treated as the newest'}${hosts}`;
  }

  /** The kubelet's runtime, and how it pulls, as far as the version and the configuration tell. */
  runtime(): Pick<NodeReport, 'runtime' | 'pullMode'> {
    const { configFile, version, rules, localPull, servesKubelet } = this.#node;
    if (version === undefined || !servesKubelet) return {};
    const runtime = runtimeOf('containerd', version.replace(/^v/u, ''));
    // A file in an unusual place may force local pulls.
    const isKnown = configFile !== undefined || !rules.transferService;
    return { ...(runtime && { runtime }), ...(isKnown && { pullMode: localPull ? 'local' : 'transfer' }) };
  }

  describe(): Promise<readonly SourcePart[]> {
    const usable = this.#state?.usable ?? [];
    return Promise.resolve(describeParts(this.#node, this.#candidates, usable, this.problems()));
  }

  async refresh(): Promise<void> {
    await this.#live?.refresh();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#live?.close();
    await this.#watched?.watcher.close();
  }

  get #node(): NodeConfig {
    return this.#state?.node ?? noConfig;
  }

  async #read(): Promise<State> {
    const { node, problem } = await this.#readNode();
    const scan = await scanHosts(node, this.#readHosts, this.#options.hostRoot);
    const inFiles = [...(problem ? [problem] : node.problems), ...scan.problems];
    const problems = inFiles.map((found): SourceProblem => ({ source: this.name, ...found }));
    for (const { origin, message } of newProblems(problems, this.#state?.problems)) {
      this.#log?.warn({ origin, problem: message }, 'containerd’s configuration has a problem');
    }
    const id = createHash('sha256').update(scan.content).digest('base64url');
    const fingerprint =
      id === this.#state?.id ? this.#state.fingerprint : await textFingerprint('containerd', scan.content);
    this.#state = { node, problems, usable: scan.usable, id, fingerprint };
    await this.#watch([...node.files.map((file) => dirname(file)), ...scan.dirs]);
    return this.#state;
  }

  /** The current configuration, or the last good one if containerd would not start with the current one. */
  async #readNode(): Promise<{ node: NodeConfig; problem?: Problem }> {
    const { version, hostRoot } = this.#options;
    try {
      return { node: await readNodeConfig(this.#candidates, version, hostRoot, this.#findVersion) };
    } catch (error) {
      if (!(error instanceof ConfigFileError)) throw error;
      const consequence =
        this.#node.configFile === undefined
          ? 'the defaults are in force'
          : 'its last good content stays in force';
      const message = `${error.reason}; containerd would not start with it; ${consequence}`;
      return { node: this.#node, problem: { origin: error.where, message } };
    }
  }

  async #watch(found: readonly string[]): Promise<void> {
    const dirs = [...new Set(found)].slice(0, maxWatched);
    const id = dirs.join('\0');
    if (this.#watched?.dirs === id || this.#stop.signal.aborted) return;
    const before = this.#watched;
    const options = { ...this.#options, root: this.#options.hostRoot };
    this.#watched = {
      dirs: id,
      watcher: new DirectoryWatcher(dirs, () => void this.#live?.refresh(), options),
    };
    await before?.watcher.close();
  }

  async #hostsFor(
    namespace: string,
    { rules, roots, localPull, registry, configFile = '' }: NodeConfig,
  ): Promise<Pick<EndpointContext, 'hosts' | 'origin' | 'forAll'>> {
    if (localPull && roots.length === 0) {
      return { hosts: mirrorHosts(registry, namespace), origin: configFile, forAll: false };
    }
    const dir = await findHostDirectory(roots, namespace, this.#options.hostRoot);
    const found = dir === undefined ? undefined : await this.#readHosts(dir, rules);
    // The scan reports the problem once.
    if (found?.problem) void this.#live?.refresh();
    return {
      hosts: effectiveHosts(found?.hosts, namespace, rules),
      origin: dir ?? 'default',
      forAll: dir?.endsWith(`/${defaultDirectory}`) ?? true,
    };
  }
}
