/**
 * CRI-O as the runtime of a node. Its files are read and watched here; auth files, certificates and
 * policy.json are read again for each lookup, as CRI-O reads them for each pull. From the outside in: this
 * file → `endpoints.ts` → `short-names.ts`, `pull-sources.ts` → `registries-conf.ts`, and beside them
 * `auth-files.ts`, `certs-d.ts`, `policy.ts`, `crio-conf.ts`. docs/internals/deviations.md lists the intended
 * differences from CRI-O.
 */
import { ifError } from '../../src/async/if-error.ts';
import { LiveSource, type Reading } from '../../src/credentials/sources/file-source.ts';
import { withProblems, type SourcePart } from '../../src/files/source-part.ts';
import { runtimeOf, type NodeReport } from '../../src/nodes/node-report.ts';
import type { Endpoint, PullTarget } from '../../src/registry/endpoints/endpoint.ts';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import { createVersionFinder, type VersionedProgram, type VersionFinder } from '../program-version.ts';
import type { Runtime, RuntimeOptions } from '../runtime.ts';
import { ConfigFileError } from '../toml.ts';
import { AuthFiles } from './auth-files.ts';
import { defaultCrioConf, readCrioConf, type ShortNameMode } from './crio-conf.ts';
import { endpointsOf, type CrioNode } from './endpoints.ts';
import { loadRegistries, registriesDirs } from './load-registries.ts';
import { noRegistries } from './registries-conf.ts';
import { partsOf, scanFiles } from './scan.ts';

export interface CrioOptions extends RuntimeOptions {
  /** Default: the output of the node's program. */
  readonly version?: string | undefined;
}

interface Found {
  readonly node: CrioNode;
  readonly version: string | undefined;
  readonly parts: readonly SourcePart[];
  /** A file that was broken at the start: what CRI-O runs with is unknown. */
  readonly unknown?: ConfigFileError | undefined;
}

const program: VersionedProgram = {
  versionIn: (output) => /^crio version (\d+\.\d+\S*)/m.exec(output)?.[1],
  remedy: 'without short_name_mode, short names are tried in every search registry',
};
const programs = ['/usr/bin/crio', '/usr/local/bin/crio'];

const noFiles: CrioNode = { conf: defaultCrioConf, registries: noRegistries, shortNameMode: 'disabled' };

export async function createCrio(options: CrioOptions): Promise<Crio> {
  return await new Crio(options).start();
}

class Crio extends LiveSource<Found> implements Runtime {
  readonly #options: CrioOptions;
  readonly #authFiles: AuthFiles;
  readonly #findVersion: VersionFinder;
  /** The last good files. */
  #last: CrioNode | undefined;

  constructor(options: CrioOptions) {
    const { hostRoot } = options;
    super({
      ...options,
      root: hostRoot,
      name: 'cri-o',
      dirs: [...defaultCrioConf.dirs, ...registriesDirs(defaultCrioConf)],
      initial: { node: noFiles, version: undefined, parts: [] },
      problemText: 'the configuration of CRI-O has a problem',
    });
    this.#options = options;
    this.#authFiles = new AuthFiles({ hostRoot, stop: this.closing });
    this.#findVersion = createVersionFinder(program, hostRoot, this.closing);
  }

  async endpoints(target: PullTarget): Promise<readonly Endpoint[]> {
    const { hostRoot } = this.#options;
    const { node, unknown } = this.found;
    if (unknown) {
      const message = `the configuration of the node's CRI-O is unknown: ${unknown.message}`;
      throw new RegistryError('unavailable', target.domain, message);
    }
    return await endpointsOf(target, { ...node, hostRoot, authFiles: this.#authFiles });
  }

  lookup(): Promise<readonly never[]> {
    return Promise.resolve([]);
  }

  description(): string {
    const { version, node } = this.found;
    const files = node.registries.files.join(', ') || 'no registries.conf';
    return `${files} of CRI-O ${version ?? 'of an unknown version'}`;
  }

  report(): Pick<NodeReport, 'runtime'> {
    const runtime = runtimeOf('cri-o', this.found.version ?? 'unknown');
    return runtime ? { runtime } : {};
  }

  describe(): Promise<readonly SourcePart[]> {
    return Promise.resolve(withProblems(this.found.parts, this.problems()));
  }

  protected async read(): Promise<Reading<Found>> {
    const { hostRoot, version: named } = this.#options;
    const found = named === undefined ? await this.#findVersion(programs) : { version: named };
    let broken: ConfigFileError | undefined;
    const node = await readNode(found.version, hostRoot).catch(
      ifError(ConfigFileError, (error) => {
        broken = error;
        return this.#last ?? noFiles;
      }),
    );
    const unknown = this.#last ? undefined : broken;
    if (!broken) this.#last = node;
    const { parts, problems, ...scan } = await scanFiles(node, hostRoot);
    return {
      ...scan,
      found: { node, version: found.version, parts: [...partsOf(node, found), ...parts], unknown },
      problems: [...(broken ? [problemOf(broken, unknown)] : []), ...node.conf.problems, ...problems],
    };
  }
}

/** CRI-O keeps all of its configuration if one of these files is broken. @throws ConfigFileError */
async function readNode(version: string | undefined, root: string): Promise<CrioNode> {
  const conf = await readCrioConf(root);
  const registries = await loadRegistries(conf, root);
  return { conf, registries, shortNameMode: modeOf(conf.shortNameMode, version) };
}

function problemOf({ where, reason }: ConfigFileError, unknown: ConfigFileError | undefined) {
  const used = unknown
    ? 'nothing is used, and what CRI-O runs with is unknown until it is fixed'
    : 'the last good files stay in force';
  return { origin: where, message: `${reason}; CRI-O would not start with it; ${used}` };
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
