/**
 * CRI-O as the runtime of a node. Its files are read and watched here; auth files, certificates and
 * policy.json are read again for each lookup, as CRI-O reads them for each pull. From the outside in: this
 * file → `endpoints.ts` → `short-names.ts`, `pull-sources.ts` → `registries-conf.ts`, and beside them
 * `auth-files.ts`, `certs-d.ts`, `policy.ts`, `crio-conf.ts`. docs/internals/deviations.md lists the intended
 * differences from CRI-O.
 */
import { ifError } from '../../src/async/if-error.ts';
import type { Problem } from '../../src/credentials/credential.ts';
import { LiveSource, type Reading } from '../../src/credentials/sources/file-source.ts';
import type { SourcePart } from '../../src/files/source-part.ts';
import { runtimeOf, type NodeReport } from '../../src/nodes/node-report.ts';
import type { Endpoint, PullTarget } from '../../src/registry/endpoints/endpoint.ts';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import { createVersionFinder, type VersionedProgram, type VersionFinder } from '../program-version.ts';
import type { Runtime, RuntimeOptions } from '../runtime.ts';
import { ConfigFileError } from '../toml.ts';
import { AuthFiles } from './auth-files.ts';
import { defaultCrioConf, readCrioConf, type CrioConf, type ShortNameMode } from './crio-conf.ts';
import { endpointsOf, type CrioNode } from './endpoints.ts';
import { loadRegistries, registriesDirs } from './load-registries.ts';
import { noRegistries, type RegistriesConf } from './registries-conf.ts';
import { describeParts, scanFiles } from './scan.ts';

export interface CrioOptions extends RuntimeOptions {
  /** Default: the output of the node's program. */
  readonly version?: string | undefined;
}

interface Found extends CrioNode {
  readonly version: string | undefined;
  readonly parts: readonly SourcePart[];
  /** A file that was broken at the start: what CRI-O runs with is unknown. */
  readonly unknown?: ConfigFileError | undefined;
}

const program: VersionedProgram = {
  name: 'crio',
  versionIn: (output) => /^crio version (\d+\.\d+\S*)/m.exec(output)?.[1],
  remedy: 'without short_name_mode, short names are tried in every search registry',
};
const programs = ['/usr/bin/crio', '/usr/local/bin/crio'];

const nothing: Found = {
  conf: defaultCrioConf,
  registries: noRegistries,
  shortNameMode: 'disabled',
  version: undefined,
  parts: [],
};

export async function createCrio(options: CrioOptions): Promise<Crio> {
  return await new Crio(options).start();
}

class Crio extends LiveSource<Found> implements Runtime {
  readonly #options: CrioOptions;
  readonly #authFiles: AuthFiles;
  readonly #findVersion: VersionFinder;
  #lastConf: CrioConf | undefined;
  #lastRegistries: RegistriesConf | undefined;

  constructor(options: CrioOptions) {
    const { hostRoot } = options;
    super({
      ...options,
      root: hostRoot,
      name: 'cri-o',
      dirs: [...defaultCrioConf.dirs, ...registriesDirs(defaultCrioConf)],
      initial: nothing,
      problemText: 'the configuration of CRI-O has a problem',
    });
    this.#options = options;
    this.#authFiles = new AuthFiles({ hostRoot, stop: this.closing });
    this.#findVersion = createVersionFinder(program, hostRoot, this.closing);
  }

  async endpoints(target: PullTarget): Promise<readonly Endpoint[]> {
    const { hostRoot } = this.#options;
    const { unknown } = this.found;
    if (unknown)
      throw new RegistryError(
        'unavailable',
        target.domain,
        `the configuration of the node's CRI-O is unknown: ${unknown.message}`,
      );
    return await endpointsOf(target, { ...this.found, hostRoot, authFiles: this.#authFiles });
  }

  lookup(): Promise<readonly never[]> {
    return Promise.resolve([]);
  }

  description(): string {
    const { version, registries } = this.found;
    const files = registries.files.join(', ') || 'no registries.conf';
    return `${files} of CRI-O ${version ?? 'of an unknown version'}`;
  }

  report(): Pick<NodeReport, 'runtime'> {
    const runtime = runtimeOf('cri-o', this.found.version ?? 'unknown');
    return runtime ? { runtime } : {};
  }

  describe(): Promise<readonly SourcePart[]> {
    return Promise.resolve(describeParts(this.found, this.found.parts, this.problems()));
  }

  protected async read(): Promise<Reading<Found>> {
    const { hostRoot } = this.#options;
    const found = this.#options.version === undefined ? await this.#findVersion(programs) : {};
    const version = this.#options.version ?? found.version;
    const broken: Problem[] = [];
    let unknown: ConfigFileError | undefined;
    const orLast = <T>(last: T | undefined, none: T, consequence: string) =>
      ifError(ConfigFileError, (error) => {
        const used = last
          ? 'the last good content stays in force'
          : 'nothing of it is used, and what CRI-O runs with is unknown until it is mended';
        broken.push({ origin: error.where, message: `${error.reason}; ${consequence}; ${used}` });
        if (!last) unknown ??= error;
        return last ?? none;
      });
    const conf = await readCrioConf(hostRoot).catch(
      orLast(this.#lastConf, defaultCrioConf, 'CRI-O would not start with it'),
    );
    const registries = await loadRegistries(conf, hostRoot).catch(
      orLast(this.#lastRegistries, noRegistries, 'CRI-O would not take it over'),
    );
    const { brokenAliases } = registries;
    if (brokenAliases)
      broken.push({
        origin: brokenAliases.where,
        message: `${brokenAliases.reason}; short names cannot be pulled on this node`,
      });
    if (!unknown) [this.#lastConf, this.#lastRegistries] = [conf, registries];
    const node = { conf, registries, shortNameMode: modeOf(conf.shortNameMode, version) };
    const { parts, problems, ...scan } = await scanFiles(node, hostRoot);
    return {
      ...scan,
      found: { ...node, version, parts, unknown },
      problems: [...broken, ...conf.problems, ...problems],
    };
  }
}

/**
 * The key exists since 1.34, where it is enforcing by default. Before, every search registry was tried; so too if
 * neither the version nor the key is known: a registry too many can at worst fail.
 */
function modeOf(configured: ShortNameMode | undefined, version: string | undefined): ShortNameMode {
  if (version === undefined) return configured ?? 'disabled';
  const minor = /^v?1\.(\d+)/.exec(version)?.[1];
  return minor !== undefined && Number(minor) < 34 ? 'disabled' : (configured ?? 'enforcing');
}
