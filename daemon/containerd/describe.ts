/** What was found of containerd, part by part, for people: `archwright inspect --verbose` and a check of the node. */
import type { SourcePart } from '../../src/files/source-part.ts';
import type { SourceProblem } from '../../src/credentials/credential.ts';
import type { NodeConfig } from './node.ts';
import type { HostDirectoryFound } from './scan.ts';

const atStart = 'containerd reads it when it starts; here a change counts at once';
const keepsGood = 'where it breaks, containerd goes on without it; here its last good content stays in force';

/**
 * @param candidates places of config.toml, in order
 * @param found directories of hosts
 */
export function describeParts(
  node: NodeConfig,
  candidates: readonly string[],
  found: readonly HostDirectoryFound[],
  problems: readonly SourceProblem[],
): SourcePart[] {
  const told = new Set(problems.map(({ origin }) => origin));
  return [
    ...candidates
      .filter((path) => path === node.configFile || !told.has(path))
      .map((path) => describeCandidate(path, node, candidates)),
    ...node.files.slice(1).map((where) => part(where, 'used', 'it is imported', [atStart])),
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
  if (path === configFile) return part(path, 'used', 'the first that exists, so it counts', [atStart]);
  const chosen = configFile === undefined ? candidates.length : candidates.indexOf(configFile);
  if (candidates.indexOf(path) < chosen) return part(path, 'absent', 'there is no such file');
  return part(path, 'unused', 'not looked at, because an earlier one counts');
}

function versionText({ version }: NodeConfig): string {
  return version === undefined
    ? 'its version is not known, so the rules of the newest count; set containerdVersion'
    : `version ${version}`;
}

function describeRoots({ roots }: NodeConfig, found: readonly HostDirectoryFound[]): SourcePart[] {
  return roots.map((root) => {
    if (found.some(({ dir }) => dir.startsWith(`${root}/`)))
      return part(root, 'used', 'hosts are looked for here');
    return part(root, 'absent', 'there are no hosts here');
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
