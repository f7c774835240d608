/** The parts of containerd's configuration, for `archwright inspect --verbose` and `agent --check`. */
import type { SourcePart } from '../../src/files/source-part.ts';
import type { SourceProblem } from '../../src/credentials/credential.ts';
import type { NodeConfig } from './node.ts';
import type { HostDirectoryFound } from './scan.ts';

const atStart = 'containerd reads it only when it starts; archwright uses a change at once';
const noVersion = 'its version is unknown, so the rules of the newest apply; set containerdVersion';
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
  const { configFile, version, roots } = node;
  const chosen = configFile === undefined ? candidates.length : candidates.indexOf(configFile);
  const withProblem = new Set(problems.map(({ origin }) => origin));
  const parts = candidates.map((path, index) => {
    if (path === configFile) return part(path, 'used', 'the first that exists', [atStart]);
    if (index < chosen) return part(path, 'absent', 'there is no such file');
    return part(path, 'unused', 'not read, because an earlier one exists');
  });
  return [
    ...parts.filter(({ where }) => where === configFile || !withProblem.has(where)),
    ...node.files.slice(1).map((where) => part(where, 'used', 'imported by config.toml', [atStart])),
    part('containerd', 'used', version === undefined ? noVersion : `version ${version}`),
    ...roots.map((root) =>
      found.some(({ dir }) => dir.startsWith(`${root}/`))
        ? part(root, 'used', 'directory of hosts')
        : part(root, 'absent', 'no hosts in this directory'),
    ),
    ...found.map(({ dir, hosts }) => part(dir, 'used', `hosts: ${hosts}`, [keepsGood])),
    ...problems.map(({ origin, message }) => part(origin, 'left-out', message)),
  ];
}

function part(
  where: string,
  state: SourcePart['state'],
  what: string,
  differs?: readonly string[],
): SourcePart {
  return { where, state, what, ...(differs && { differs }) };
}
