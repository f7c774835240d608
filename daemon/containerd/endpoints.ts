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
import { dirname } from 'node:path';
import type { Problem } from '../../src/credentials/credential.ts';
import { LiveSource, type Reading } from '../../src/credentials/sources/file-source.ts';
import { FileError } from '../../src/files/read.ts';
import type { SourcePart } from '../../src/files/source-part.ts';
import { runtimeOf, type NodeReport } from '../../src/nodes/node-report.ts';
import type { Endpoint, PullTarget } from '../../src/registry/endpoints/endpoint.ts';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import type { Runtime, RuntimeOptions } from '../runtime.ts';
import { ConfigFileError, InvalidConfig } from '../toml.ts';
import { createVersionFinder, type VersionFinder } from '../program-version.ts';
import { containerdProgram, defaultConfigPathCandidates } from './config/find-version.ts';
import { rulesFor } from './config/rules.ts';
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

export interface ContainerdEndpointsOptions extends RuntimeOptions {
  /** Paths of config.toml; the first that exists counts. Default: the paths of known distributions. */
  readonly candidates?: readonly string[] | undefined;
  /** Version of containerd. Default: the output of the node's program. */
  readonly version?: string | undefined;
  /** Whether mirrors receive the credentials of the registry that they mirror; called for each lookup. */
  readonly mirrorCredentials?: (() => boolean) | undefined;
}

interface Found {
  readonly node: NodeConfig;
  readonly usable: readonly HostDirectoryFound[];
}

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

export async function createContainerdEndpoints(options: ContainerdEndpointsOptions) {
  return await new ContainerdEndpoints(options).start();
}

export class ContainerdEndpoints extends LiveSource<Found> implements Runtime {
  readonly #options: ContainerdEndpointsOptions;
  readonly #candidates: readonly string[];
  readonly #findVersion: VersionFinder;
  readonly #readHosts: HostFilesReader;

  constructor(options: ContainerdEndpointsOptions) {
    const { hostRoot } = options;
    const candidates = options.candidates?.flatMap(filesOfCandidate) ?? defaultConfigPathCandidates;
    super({
      ...options,
      root: hostRoot,
      name: 'containerd',
      dirs: [...new Set(candidates.map((path) => dirname(path)))],
      initial: { node: noConfig, usable: [] },
      problemText: 'the configuration of containerd has a problem',
    });
    this.#options = options;
    this.#candidates = candidates;
    this.#findVersion = createVersionFinder(containerdProgram, hostRoot, this.closing);
    this.#readHosts = createHostFilesReader(hostRoot);
  }

  async endpoints({ domain: namespace }: Pick<PullTarget, 'domain'>): Promise<readonly Endpoint[]> {
    const node = this.found.node;
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

  describe(): Promise<readonly SourcePart[]> {
    const { node, usable } = this.found;
    return Promise.resolve(describeParts(node, this.#candidates, usable, this.problems()));
  }

  protected async read(): Promise<Reading<Found>> {
    const { node, problem } = await this.#readNode();
    const { content, usable, ...scan } = await scanHosts(node, this.#readHosts, this.#options.hostRoot);
    return {
      found: { node, usable },
      problems: [...(problem ? [problem] : node.problems), ...scan.problems],
      content,
      dirs: [...node.files.map((file) => dirname(file)), ...scan.dirs],
    };
  }

  /** The current configuration, or the last good one if containerd would not start with the current one. */
  async #readNode(): Promise<{ node: NodeConfig; problem?: Problem }> {
    const { version, hostRoot } = this.#options;
    try {
      return { node: await readNodeConfig(this.#candidates, version, hostRoot, this.#findVersion) };
    } catch (error) {
      if (!(error instanceof ConfigFileError)) throw error;
      const consequence =
        this.found.node.configFile === undefined
          ? 'the defaults are in force'
          : 'its last good content stays in force';
      const message = `${error.reason}; containerd would not start with it; ${consequence}`;
      return { node: this.found.node, problem: { origin: error.where, message } };
    }
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
    if (found?.problem) void this.refresh();
    return {
      hosts: effectiveHosts(found?.hosts, namespace, rules),
      origin: dir ?? 'default',
      forAll: dir?.endsWith(`/${defaultDirectory}`) ?? true,
    };
  }
}
