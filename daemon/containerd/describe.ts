/** The parts of containerd's configuration, for `archwright inspect --verbose` and `agent --check`. */
import type { SourcePart } from '../../src/files/source-part.ts';
import type { SourceProblem } from '../../src/credentials/credential.ts';
import type { NodeConfig } from './node.ts';
import type { HostDirectoryFound } from './scan.ts';

const atStart = 'containerd reads it only when it starts; archwright uses a change at once';
const keepsGood = 'if it breaks, containerd ignores it; archwright keeps its last good content in force';

/**
 * @param candidates paths of config.toml, in order
 * @param found directories of hosts
 */
export function describeParts(
  node: NodeConfig,
  candidates: readonly string[],
  found: readonly HostDirectoryFound[],
  problems: readonly SourceProblem[],
): SourcePart[] {
  const withProblem = new Set(problems.map(({ origin }) => origin));
  return [
    ...candidates
      .filter((path) => path === node.configFile || !withProblem.has(path))
      .map((path) => describeCandidate(path, node, candidates)),
    ...node.files.slice(1).map((where) => part(where, 'used', 'imported by config.toml', [atStart])),
    part('containerd', 'used', versionText(node)),
    ...describeRoots(node, found),
    ...found.map(({ dir, hosts }) => part(dir, 'used', `hosts: ${hosts}`, [keepsGood])),
    ...problems.map(({ origin, message }) => part(origin, 'left-out', message)),
  ];
}

function describeCandidate(
  path: string,
  { configFile }: NodeConfig,
  candidates: readonly string[],
): SourcePart {
  if (path === configFile) return part(path, 'used', 'the first that exists', [atStart]);
  const chosen = configFile === undefined ? candidates.length : candidates.indexOf(configFile);
  if (candidates.indexOf(path) < chosen) return part(path, 'absent', 'there is no such file');
  return part(path, 'unused', 'not read, because an earlier one exists');
}

function versionText({ version }: NodeConfig): string {
  return version === undefined
    ? 'its version is unknown, so the rules of the newest apply; set containerdVersion'
    : `version ${version}`;
}

function describeRoots({ roots }: NodeConfig, found: readonly HostDirectoryFound[]): SourcePart[] {
  return roots.map((root) => {
    if (found.some(({ dir }) => dir.startsWith(`${root}/`))) return part(root, 'used', 'directory of hosts');
    return part(root, 'absent', 'no hosts in this directory');
  });
}

function part(
  where: string,
  state: SourcePart['state'],
  what: string,
  differs?: readonly string[],
): SourcePart {
  return { where, state, what, ...(differs && { differs }) };
}
