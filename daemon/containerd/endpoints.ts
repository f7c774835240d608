/**
 * The endpoints of a registry namespace as the node's containerd would use them, with its certificates,
 * headers and credentials. All of it comes from the node's own files below the host root:
 *
 *   config.toml and its imports (`config.ts`) → registry settings (`registry.ts`) → `config_path`
 *   → the namespace's directory (`host-directory.ts`) → hosts.toml (`hosts-file.ts`) or certificate files
 *   → hosts with defaults, or the deprecated mirrors, and their endpoints (`endpoint.ts`)
 *
 * Versions of containerd differ in all of it (`rules.ts`).
 * docs/internals/deviations.md lists the intended differences from containerd.
 */
import type { Problem } from '../../src/credentials/credential.ts';
import { part, type SourcePart } from '../../src/files/source-part.ts';
import { runtimeOf, type NodeReport } from '../../src/nodes/node-report.ts';
import type { Endpoint, PullTarget } from '../../src/registry/endpoints/endpoint.ts';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import { plainJson } from '../../src/telemetry/secret.ts';
import { orBroken, type NodeFiles } from '../node-files.ts';
import { Runtime, pullProblem, type PullReading, type RuntimeOptions } from '../runtime.ts';
import { ConfigFileError, InvalidConfig } from '../toml.ts';
import { filesOfCandidate, loadNodeConfig, type NodeConfig } from './config/registry.ts';
import { containerdProgram, defaultConfigPathCandidates, rulesFor } from './config/rules.ts';
import { endpointsOf, type EndpointContext, effectiveHosts, mirrorHosts } from './endpoint.ts';
import {
  defaultDirectory,
  findHostDirectory,
  loadHostDirectories,
  withCertificates,
  type HostDirectories,
} from './hosts/host-directory.ts';

export interface ContainerdEndpointsOptions extends RuntimeOptions {
  /** Paths of config.toml; the first that exists counts. Default: the paths of known distributions. */
  readonly candidates?: readonly string[] | undefined;
  /** Whether mirrors receive the credentials of the registry that they mirror; called for each lookup. */
  readonly mirrorCredentials?: (() => boolean) | undefined;
}

const noConfig: NodeConfig = {
  configFile: undefined,
  files: [],
  version: undefined,
  rules: rulesFor(),
  registry: { configPath: '', mirrors: new Map(), configs: new Map(), auths: new Map(), headers: [] },
  credentials: new Map(),
  roots: [],
  localPull: false,
  servesKubelet: true,
  problems: [],
};

export async function createContainerdEndpoints(options: ContainerdEndpointsOptions) {
  return await new ContainerdEndpoints(options).start();
}

export class ContainerdEndpoints extends Runtime<NodeConfig, HostDirectories> {
  readonly #options: ContainerdEndpointsOptions;
  readonly #candidates: readonly string[];

  constructor(options: ContainerdEndpointsOptions) {
    super(options, {
      name: 'containerd',
      label: 'containerd',
      dirs: ['/etc/containerd'],
      program: containerdProgram,
      initial: { node: noConfig, files: new Map() },
      ifUnknown: 'the defaults are in force',
    });
    this.#options = options;
    this.#candidates = options.candidates?.flatMap(filesOfCandidate) ?? defaultConfigPathCandidates;
  }

  async endpoints({ domain: namespace }: Pick<PullTarget, 'domain'>): Promise<readonly Endpoint[]> {
    const { node } = this.found;
    const mirrorCredentials = this.#options.mirrorCredentials?.() ?? true;
    try {
      return endpointsOf({ ...(await this.#hostsFor(namespace)), node, namespace, mirrorCredentials });
    } catch (error) {
      if (!(error instanceof ConfigFileError || error instanceof InvalidConfig)) throw error;
      // containerd's pull would fail before any request, for example for an unreadable CA file.
      const message = `the node's containerd cannot pull from ${namespace}: ${error.message}`;
      throw new RegistryError('unavailable', namespace, message, { cause: error });
    }
  }

  async #hostsFor(namespace: string): Promise<Pick<EndpointContext, 'hosts' | 'origin' | 'forAll'>> {
    const { rules, roots, localPull, registry, configFile = '' } = this.found.node;
    if (localPull && roots.length === 0) {
      const mirrors = mirrorHosts(registry, namespace);
      const hosts = await Promise.all(mirrors.map((host) => withCertificates(host, this.files)));
      return { hosts, origin: configFile, forAll: false };
    }
    const found = findHostDirectory(this.found.files, roots, namespace);
    return {
      hosts: effectiveHosts(found?.hosts, namespace, rules),
      origin: found?.dir ?? 'default',
      forAll: found?.dir.endsWith(`/${defaultDirectory}`) ?? true,
    };
  }

  description(): string {
    const { configFile = 'no config.toml', version, roots, localPull } = this.found.node;
    const hosts = roots.length > 0 ? `, hosts in ${roots.join(localPull ? ', ' : '')}` : '';
    return `${configFile} of containerd ${version ?? 'of an unknown version, treated as the newest'}${hosts}`;
  }

  report(): Pick<NodeReport, 'runtime' | 'pullMode'> {
    const { configFile, version, rules, localPull, servesKubelet } = this.found.node;
    if (!servesKubelet) return {};
    const runtime = runtimeOf('containerd', version?.replace(/^v/u, '') ?? 'unknown');
    // A file in an unusual place may force local pulls.
    const isKnown = version !== undefined && (configFile !== undefined || !rules.transferService);
    return { ...(runtime && { runtime }), ...(isKnown && { pullMode: localPull ? 'local' : 'transfer' }) };
  }

  protected async readNode(): Promise<NodeConfig> {
    return await loadNodeConfig(this.#candidates, this.files, this.findVersion);
  }

  protected async readPullFiles(node: NodeConfig): Promise<PullReading<HostDirectories>> {
    const { rules, registry, roots, localPull } = node;
    const files = await loadHostDirectories(roots, rules, this.files, this.found.files);
    const found = [...files.values()].map((each) =>
      each instanceof ConfigFileError ? pullProblem(each) : each.problem,
    );
    const hosts = [...files].map(([dir, each]) => [dir, 'hosts' in each ? each.hosts : each]);
    return {
      files,
      parts: partsOf(node, this.#candidates, files),
      content: plainJson([rules, registry, roots, localPull, hosts]),
      problems: [
        ...node.problems,
        ...found.filter((each) => each !== undefined),
        ...(await ignoredRoots(node, this.files)),
      ],
    };
  }
}

/** The transfer service does not split `config_path`, so it ignores listed directories that have settings. */
async function ignoredRoots(node: NodeConfig, files: NodeFiles): Promise<Problem[]> {
  const [path, ...others] = node.roots;
  if (node.localPull || others.length > 0 || path === undefined || !path.includes(':')) return [];
  const ignored: string[] = [];
  for (const dir of path.split(':')) {
    const names = await orBroken(dir, () => files.names(dir, 1));
    if (names instanceof ConfigFileError || names.length > 0) ignored.push(dir);
  }
  if (ignored.length === 0) return [];
  const message =
    `this containerd does not read ${ignored.join(' and ')}, because its transfer service reads config_path "${path}" ` +
    'as one directory; set config_path to a single directory, or use_local_image_pull to true';
  return [{ origin: node.configFile ?? 'containerd', message }];
}

const atStart = 'containerd reads it only when it starts; archwright uses a change at once';
const noVersion = 'its version is unknown, so the rules of the newest apply; set containerdVersion';
const keepsGood = 'if it breaks, containerd ignores it; archwright keeps its last good content in force';

/** What `archwright inspect --verbose` and `agent --check` print. @param candidates paths of config.toml, in order */
function partsOf(
  { configFile, files, version, roots }: NodeConfig,
  candidates: readonly string[],
  directories: HostDirectories,
): readonly SourcePart[] {
  const chosen = configFile === undefined ? candidates.length : candidates.indexOf(configFile);
  const found = [...directories].flatMap(([dir, each]) => ('hosts' in each ? [{ dir, ...each }] : []));
  return [
    ...candidates.map((path, index) => {
      if (path === configFile) return part(path, 'used', 'the first that exists', [atStart]);
      if (index < chosen) return part(path, 'absent', 'there is no such file');
      return part(path, 'unused', 'not read, because an earlier one exists');
    }),
    ...files.slice(1).map((where) => part(where, 'used', 'imported by config.toml', [atStart])),
    part('containerd', 'used', version === undefined ? noVersion : `version ${version}`),
    ...roots.map((root) =>
      found.some(({ dir }) => dir.startsWith(`${root}/`))
        ? part(root, 'used', 'directory of hosts')
        : part(root, 'absent', 'no hosts in this directory'),
    ),
    ...found.map(({ dir, hosts }) => part(dir, 'used', `hosts: ${hosts.length}`, [keepsGood])),
  ];
}
