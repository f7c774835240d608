/**
 * The endpoints that the node's containerd would ask for a registry namespace, with the certificates, headers and credentials
 * that it would use. Everything is read from the node's own files, below the host root:
 *
 *   config.toml and its imports (`config.ts`) → registry settings (`registry.ts`) → `config_path`
 *   → the namespace's directory (`host-directory.ts`) → hosts.toml (`hosts-file.ts`) or certificate files
 *   → hosts with defaults filled in (`host-defaults.ts`), or the deprecated mirrors (`legacy-mirrors.ts`) → endpoints (`endpoint.ts`)
 *
 * Versions of containerd differ in all of it (`rules.ts`); `find-version.ts` asks the node's program. config.toml is kept and
 * followed (`node.ts`), the directory of a namespace is read at each lookup (`host-files.ts`), and now and then all of it is
 * looked through for the fingerprint (`scan.ts`). What is knowingly not as in containerd is listed in docs/internals/deviations.md.
 */
import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import type { SourcePart } from '../../src/files/source-part.ts';
import type { SourceProblem } from '../../src/credentials/credential.ts';
import { combineFingerprints, textFingerprint } from '../../src/credentials/identity.ts';
import { bindSourceMetrics } from '../../src/credentials/sources/metrics.ts';
import { FileError } from '../../src/files/error.ts';
import { liveContent, type LiveContent } from '../../src/files/live.ts';
import { watchDirectories, type Watcher, type WatchOptions } from '../../src/files/watch.ts';
import type { Endpoint, EndpointSource } from '../../src/registry/endpoints/endpoint.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { ConfigError } from './config/config.ts';
import { describeParts } from './describe.ts';
import { endpointsOf } from './endpoint.ts';
import { createVersionFinder } from './config/find-version.ts';
import { effectiveHosts, type EffectiveHost } from './hosts/host-defaults.ts';
import { defaultDirectory, findHostDirectory } from './hosts/host-directory.ts';
import { createHostFilesReader } from './hosts/host-files.ts';
import { mirrorHosts, MirrorInvalid } from './config/legacy-mirrors.ts';
import { HostFilesError, lookupError } from './lookup-error.ts';
import { readNodeConfig, type NodeConfig } from './node.ts';
import { defaultConfigPathCandidates } from './config/default-paths.ts';
import { rulesFor } from './config/rules.ts';
import { scanHosts, type HostDirectoryFound } from './scan.ts';

export interface ContainerdEndpointsOptions extends Omit<WatchOptions, 'root'> {
  /** Directory that stands for `/`. */
  readonly hostRoot: string;
  /** Paths of config.toml of which the first that exists counts; where distributions keep it by default. */
  readonly candidates?: readonly string[] | undefined;
  /** Version of containerd; asked of the node's program by default. */
  readonly version?: string | undefined;
  /** Whether mirrors get the credentials of the registry that they mirror; asked at each lookup. */
  readonly mirrorCredentials?: (() => boolean) | undefined;
  readonly metrics?: Metrics | undefined;
}

export interface ContainerdEndpoints extends EndpointSource {
  /** What is left out, or would keep containerd from pulling. */
  problems(): readonly SourceProblem[];
  /** For people: the configuration that counts, and the version. */
  description(): string;
  /** Each part as it was found, for people. */
  describe(): readonly SourcePart[];
  /** Looks at all files now instead of at the next change. */
  refresh(): Promise<void>;
  close(): Promise<void>;
}

interface State {
  readonly node: NodeConfig;
  readonly problems: readonly SourceProblem[];
  readonly usable: readonly HostDirectoryFound[];
  readonly id: string;
  readonly fingerprint: string;
}

/** Reads the node's files once and then keeps up with them. */
export async function createContainerdEndpoints(
  options: ContainerdEndpointsOptions,
): Promise<ContainerdEndpoints> {
  const { hostRoot, candidates = defaultConfigPathCandidates } = options;
  const log = options.log?.child({ endpointSource: 'containerd' });
  const meter = bindSourceMetrics(options.metrics, 'containerd');
  const stop = new AbortController();
  const finder = createVersionFinder(hostRoot, stop.signal);
  const reader = createHostFilesReader(hostRoot);
  let last: State | undefined;
  let live: LiveContent<State> | undefined;
  let inner: { readonly dirs: string; readonly watcher: Watcher } | undefined;

  /** The configuration as it is, or where containerd would not start with it, the last good one. */
  async function currentNode(): Promise<{ node: NodeConfig; problem?: SourceProblem }> {
    try {
      return {
        node: await readNodeConfig({ candidates, version: options.version, hostRoot, finder }),
      };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const consequence =
        last?.node.configFile === undefined ? 'the defaults count' : 'its last good content stays in force';
      const message = `${error.reason}; containerd would not start with it; ${consequence}`;
      return { node: last?.node ?? nothing, problem: { source: 'containerd', origin: error.where, message } };
    }
  }

  async function look(): Promise<State> {
    const { node, problem } = await currentNode();
    const scan = await scanHosts(node, reader, hostRoot);
    const problems: SourceProblem[] = [
      ...(problem ? [problem] : []),
      ...[...(problem ? [] : node.problems), ...scan.problems].map((found) => ({
        source: 'containerd' as const,
        ...found,
      })),
    ];
    const known = new Set(last?.problems.map(identify));
    for (const found of problems) {
      if (known.has(identify(found))) continue;
      log?.warn(
        { origin: found.origin, problem: found.message },
        'the configuration of containerd has a fault',
      );
    }
    const id = createHash('sha256').update(scan.content).digest('base64url');
    const fingerprint =
      id === last?.id ? last.fingerprint : await textFingerprint('containerd', scan.content);
    last = { node, problems, usable: scan.usable, id, fingerprint };
    await follow([...node.files.map((file) => dirname(file)), ...scan.dirs]);
    return last;
  }

  /** Directories become known only while reading; they are watched besides those of the candidates. */
  async function follow(found: readonly string[]): Promise<void> {
    const dirs = [...new Set(found)].slice(0, maxWatched);
    const id = dirs.join('\0');
    if (inner?.dirs === id || stop.signal.aborted) return;
    const before = inner;
    inner = {
      dirs: id,
      watcher: watchDirectories(dirs, () => void live?.refresh(), { ...options, root: hostRoot }),
    };
    await before?.watcher.close();
  }

  live = await liveContent<State>({
    ...options,
    root: hostRoot,
    dirs: [...new Set(candidates.map((path) => dirname(path)))],
    read: look,
    fingerprint: ({ id }) => id,
    onRead: (state) => meter.read(state?.problems.length === 0),
    onProblem: (error) =>
      log?.warn({ err: error }, 'reading the configuration of containerd failed, the last one stays'),
  });

  async function endpoints(namespace: string): Promise<readonly Endpoint[]> {
    const { node } = last ?? { node: nothing };
    try {
      const found = await hostsFor(namespace, node);
      return await endpointsOf(found.hosts, {
        namespace,
        rules: node.rules,
        hostRoot,
        origin: found.origin,
        configFile: node.configFile ?? '',
        registry: node.registry,
        localPull: node.localPull,
        forAll: found.forAll,
        mirrorCredentials: options.mirrorCredentials?.() ?? true,
      });
    } catch (error) {
      const known =
        error instanceof HostFilesError || error instanceof FileError || error instanceof MirrorInvalid;
      throw known ? lookupError(namespace, error.message, error) : error;
    }
  }

  async function hostsFor(namespace: string, node: NodeConfig): Promise<FoundHosts> {
    const { rules, roots, localPull, registry, configFile = '' } = node;
    if (localPull && roots.length === 0) {
      return { hosts: mirrorHosts(registry, namespace), origin: configFile, forAll: false };
    }
    const dir = await findHostDirectory(roots, namespace, hostRoot);
    if (dir === undefined) {
      return { hosts: effectiveHosts(undefined, namespace, rules), origin: 'default', forAll: true };
    }
    const { hosts, problem } = await reader.read(dir, rules);
    // The scan tells it, once.
    if (problem) void live?.refresh();
    return {
      hosts: effectiveHosts(hosts, namespace, rules),
      origin: dir,
      forAll: dir.endsWith(`/${defaultDirectory}`),
    };
  }

  function problems(): readonly SourceProblem[] {
    const failure = live?.problem();
    const found = last?.problems ?? [];
    if (failure === undefined) return found;
    return [...found, { source: 'containerd', origin: candidates.join(', '), message: failure.message }];
  }

  return {
    endpoints,
    fingerprint: () => last?.fingerprint ?? combineFingerprints(['containerd']),
    problems,
    description: () => describe(last?.node ?? nothing),
    describe: () => describeParts(last?.node ?? nothing, candidates, last?.usable ?? [], problems()),
    refresh: async () => live?.refresh(),
    close: async () => {
      stop.abort();
      await live?.close();
      await inner?.watcher.close();
    },
  };
}

interface FoundHosts {
  readonly hosts: readonly EffectiveHost[];
  readonly origin: string;
  readonly forAll: boolean;
}

/** Each watched directory costs a handle of the system. */
const maxWatched = 200;

const nothing: NodeConfig = {
  configFile: undefined,
  files: [],
  version: undefined,
  rules: rulesFor(),
  registry: { configPath: '', mirrors: new Map(), configs: new Map(), auths: new Map(), headers: [] },
  roots: [],
  localPull: false,
  problems: [],
};

function identify({ origin, message }: SourceProblem): string {
  return `${origin}\0${message}`;
}

function describe({ configFile, version, roots, localPull }: NodeConfig): string {
  const config = configFile ?? 'no config.toml';
  const hosts = roots.length > 0 ? `, hosts in ${roots.join(localPull ? ', ' : '')}` : '';
  return `${config} of containerd ${version ?? 'of an unknown version, taken for the newest'}${hosts}`;
}
