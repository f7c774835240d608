/**
 * The whole configuration of hosts at once: for the fingerprint, problems, and directories to watch. Lookups
 * read only the directory that they need.
 */
import { join } from 'node:path';
import { FileError, listDirectory } from '../../src/files/read.ts';
import { plainJson } from '../../src/telemetry/secret.ts';
import { readTls } from './endpoint.ts';
import type { HostFilesReader } from './hosts/host-directory.ts';
import { ConfigFileError } from '../toml.ts';
import type { NodeConfig } from './node.ts';
import { leftOut, part, type SourcePart } from '../../src/files/source-part.ts';
import type { Problem, SourceProblem } from '../../src/credentials/credential.ts';

export interface HostDirectoryFound {
  readonly dir: string;
  readonly hosts: number;
}

/** Nodes have one directory for each configured registry. */
const maxDirectories = 1000;

/** @returns `content`: everything that affects endpoints, in clear text with secrets: only for hashing */
export async function scanHosts(node: NodeConfig, readHosts: HostFilesReader, hostRoot: string) {
  const problems: Problem[] = [];
  const dirs: string[] = [];
  const usable: HostDirectoryFound[] = [];
  const found: unknown[] = [];
  for (const root of node.roots) {
    const names = await namesIn(root, hostRoot, problems);
    dirs.push(root);
    for (const name of names) {
      const dir = join(root, name);
      try {
        const { hosts, problem } = await readHosts(dir, node.rules);
        if (problem) problems.push(problem);
        dirs.push(dir);
        found.push([dir, hosts, await Promise.all(hosts.map((host) => readTls(host, hostRoot)))]);
        usable.push({ dir, hosts: hosts.length });
      } catch (error) {
        if (!(error instanceof ConfigFileError)) throw error;
        const message = `${error.reason}; pulls that need it fail on this node`;
        problems.push({ origin: error.where, message });
        found.push([dir, error.message]);
      }
    }
  }
  problems.push(...(await ignoredRoots(node, hostRoot)));
  const { rules, registry, roots, localPull } = node;
  return { content: plainJson([rules, registry, roots, localPull, found]), problems, dirs, usable };
}

/** The transfer service does not split `config_path`, so it ignores listed directories that have settings. */
async function ignoredRoots(node: NodeConfig, hostRoot: string): Promise<Problem[]> {
  const [path, ...others] = node.roots;
  if (node.localPull || others.length > 0 || path === undefined || !path.includes(':')) return [];
  const ignored: string[] = [];
  for (const part of path.split(':')) if ((await namesIn(part, hostRoot, [])).length > 0) ignored.push(part);
  if (ignored.length === 0) return [];
  const message =
    `this containerd does not read ${ignored.join(' and ')}, because its transfer service reads config_path "${path}" ` +
    'as one directory; set config_path to a single directory, or use_local_image_pull to true';
  return [{ origin: node.configFile ?? 'containerd', message }];
}

async function namesIn(dir: string, root: string, problems: Problem[]): Promise<readonly string[]> {
  try {
    const names = await listDirectory(dir, { maxEntries: maxDirectories, root });
    return names.filter((name) => !name.startsWith('.'));
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    if (error.code !== 'missing') problems.push({ origin: dir, message: error.message });
    return [];
  }
}

const atStart = 'containerd reads it only when it starts; archwright uses a change at once';
const noVersion = 'its version is unknown, so the rules of the newest apply; set containerdVersion';
const keepsGood = 'if it breaks, containerd ignores it; archwright keeps its last good content in force';

/**
 * The parts of containerd's configuration, for `archwright inspect --verbose` and `agent --check`.
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
    ...leftOut(problems),
  ];
}
