/**
 * CRI-O as the runtime of a node. From the outside in: this file → `endpoints.ts` → `pull-sources.ts` →
 * `registries-conf.ts`, and beside them `auth-files.ts`, `certs-d.ts`, `policy.ts`, `crio-conf.ts`.
 * docs/internals/deviations.md lists the intended differences from CRI-O.
 */
import { part, type SourcePart } from '../../src/files/source-part.ts';
import { runtimeOf, type NodeReport } from '../../src/nodes/node-report.ts';
import type { Endpoint, PullTarget } from '../../src/registry/endpoints/endpoint.ts';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import { plainJson } from '../../src/telemetry/secret.ts';
import { orBroken } from '../node-files.ts';
import type { FoundVersion, VersionedProgram } from '../node-programs.ts';
import { Runtime, pullProblem, type PullReading, type RuntimeOptions } from '../runtime.ts';
import { ConfigFileError } from '../toml.ts';
import { CredentialHelpers, loadAuthFiles } from './auth-files.ts';
import { loadCertificates, type HostCertificates } from './certs-d.ts';
import { defaultCrioConf, loadCrioConf, type ShortNameMode } from './crio-conf.ts';
import { endpointsOf, type CrioNode, type PullFiles } from './endpoints.ts';
import { loadRegistries, noRegistries } from './registries-conf.ts';
import { loadPolicyFile } from './policy.ts';

const program: VersionedProgram = {
  versionIn: (output) => /^crio version (\d+\.\d+\S*)/m.exec(output)?.[1],
  remedy: 'without short_name_mode, short names are tried in every search registry',
};
const programs = ['/usr/bin/crio', '/usr/local/bin/crio'];

const noFiles = {
  node: { conf: defaultCrioConf, registries: noRegistries, shortNameMode: 'disabled' },
  files: { authFiles: new Map(), policy: undefined, certificates: new Map() },
} as const;

export async function createCrio(options: RuntimeOptions): Promise<Crio> {
  return await new Crio(options).start();
}

class Crio extends Runtime<CrioNode, PullFiles> {
  readonly #helpers: CredentialHelpers;
  /** The program's version, whatever its files are. */
  #version: FoundVersion = {};

  constructor(options: RuntimeOptions) {
    super(options, {
      name: 'cri-o',
      label: 'CRI-O',
      dirs: ['/etc/crio', '/etc/containers'],
      program,
      initial: noFiles,
      ifUnknown: 'nothing is used, and what CRI-O runs with is unknown until it is fixed',
    });
    this.#helpers = new CredentialHelpers(options.hostRoot, this.closing);
  }

  async endpoints(target: PullTarget): Promise<readonly Endpoint[]> {
    const { node, files, unknown } = this.found;
    if (unknown) {
      const message = `the configuration of the node's CRI-O is unknown: ${unknown.message}`;
      throw new RegistryError('unavailable', target.domain, message);
    }
    return await endpointsOf(target, { ...node, ...files, helpers: this.#helpers });
  }

  description(): string {
    const files = this.found.node.registries.files.join(', ') || 'no registries.conf';
    return `${files} of CRI-O ${this.#version.version ?? 'of an unknown version'}`;
  }

  report(): Pick<NodeReport, 'runtime'> {
    const runtime = runtimeOf('cri-o', this.#version.version ?? 'unknown');
    return runtime ? { runtime } : {};
  }

  /** CRI-O keeps all of its configuration if one of these files is broken. */
  protected async readNode(): Promise<CrioNode> {
    this.#version = await this.findVersion(programs);
    const conf = await loadCrioConf(this.files);
    const registries = await loadRegistries(conf, this.files);
    return { conf, registries, shortNameMode: modeOf(conf.shortNameMode, this.#version.version) };
  }

  protected async readPullFiles(node: CrioNode): Promise<PullReading<PullFiles>> {
    const { conf, registries, shortNameMode } = node;
    const files = {
      authFiles: await loadAuthFiles(conf, registries.credentialHelpers, this.files),
      policy: await orBroken('policy.json', () => loadPolicyFile(conf, this.files)),
      certificates: await loadCertificates(conf, this.files),
    };
    const all = [...files.authFiles.values(), files.policy, ...files.certificates.values()];
    const broken = all.filter((each) => each instanceof ConfigFileError);
    const { brokenAliases: aliases } = registries;
    const problems = [
      ...conf.problems,
      ...(aliases
        ? [{ origin: aliases.where, message: `${aliases.reason}; short names cannot be pulled on this node` }]
        : []),
      ...broken.map(pullProblem),
    ];
    return {
      files,
      parts: partsOf(node, this.#version, files),
      content: plainJson([shortNameMode, registries, files]),
      problems,
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

const atStart = 'CRI-O reads it only when it starts; archwright uses a change at once';
const atReload = 'CRI-O reads it again only when it is reloaded; archwright uses a change at once';

/** What `archwright inspect --verbose` and `agent --check` print. */
function partsOf(
  { conf, registries, shortNameMode }: CrioNode,
  { version, problem }: FoundVersion,
  { authFiles, policy, certificates }: PullFiles,
): readonly SourcePart[] {
  const { registries: entries, search, aliases } = registries;
  const used = (where: string, what: string, differs?: readonly string[]) =>
    part(where, 'used', what, differs);
  const absent = (where: string) => part(where, 'absent', 'there is no such file');
  const searched = search?.registries.join(', ') || 'none';
  const noVersion = problem ? `${problem.origin}: ${problem.message}` : 'its program is not found';
  return [
    ...(conf.files.length === 0 ? [absent('/etc/crio/crio.conf')] : []),
    ...conf.files.map((file) => used(file, 'settings of CRI-O', [atStart])),
    used('cri-o', version === undefined ? `its version is unknown: ${noVersion}` : `version ${version}`),
    ...(registries.files.length === 0 ? [absent('/etc/containers/registries.conf')] : []),
    ...registries.files.map((file) =>
      used(file, `registries: ${entries.filter((entry) => entry.file === file).length}`, [atReload]),
    ),
    used('short names', `${shortNameMode}, aliases: ${aliases.size}, search registries: ${searched}`),
    ...entries
      .filter(({ blocked, location, prefix }) => blocked && location !== prefix)
      .map(({ prefix, file }) => used(file, `blocked has no effect on ${prefix}, whose location is another`)),
    ...[...authFiles]
      .filter(([, file]) => !(file instanceof ConfigFileError))
      .map(([path]) => used(path, 'credentials of registries and mirrors')),
    ...(policy && !(policy instanceof ConfigFileError)
      ? [used(policy.path, 'which images may be pulled')]
      : []),
    ...[...certificates.values()]
      .filter((each): each is HostCertificates => !(each instanceof ConfigFileError))
      .map(({ dir, ca, client }) => used(dir, `CAs: ${ca.length}, client certificates: ${client.length}`)),
  ];
}
