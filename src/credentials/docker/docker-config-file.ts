/**
 * The kubelet's docker config: the first of several candidate files that parses, even if it is empty
 * (kubernetes pkg/credentialprovider/config.go `ReadDockerConfigFile`). Missing candidates are no problem.
 * Unreadable and malformed ones are skipped as on the node, and reported.
 */
import { basename, dirname, join } from 'node:path';
import { FileError, readBounded } from '../../files/read.ts';
import { part, type SourcePart } from '../../files/source-part.ts';
import { DockerConfigError, parseDockerConfig } from './docker-config.ts';
import {
  createFileSource,
  type FileSourceOptions,
  type Findings,
  type LiveCredentialSource,
} from '../sources/file-source.ts';
import { holdEntries } from '../keyring/keyring.ts';

/** Kubelet defaults: root and working directory (`/` in systemd), root's home; never `DOCKER_CONFIG`. */
export const defaultDockerConfigPathCandidates: readonly string[] = [
  '/var/lib/kubelet/config.json',
  '/config.json',
  '/root/.docker/config.json',
  '/.docker/config.json',
  '/var/lib/kubelet/.dockercfg',
  '/.dockercfg',
  '/root/.dockercfg',
];

/** The kubelet has no limit; a thousand registries with long tokens stay below this. */
export const maxDockerConfigBytes = 4 * 1024 * 1024;

const slower = 'the kubelet caches the file for 5 minutes; here a change counts at once';

export interface DockerConfigSourceOptions extends FileSourceOptions {
  /** Paths in order. One named `.dockercfg` has that older format, any other is a `config.json`. */
  readonly candidates?: readonly string[] | undefined;
  /** Whether it is a problem if no candidate exists. */
  readonly isRequired?: boolean | undefined;
}

/** Reads the candidates, and again when they change. */
export async function createDockerConfigSource(
  options: DockerConfigSourceOptions = {},
): Promise<LiveCredentialSource> {
  const candidates = options.candidates ?? defaultDockerConfigPathCandidates;
  const dirs = [...new Set(candidates.map((path) => dirname(path)))];
  return createFileSource('docker-config', dirs, () => search(candidates, options), options);
}

async function search(
  candidates: readonly string[],
  { root, isRequired = false }: DockerConfigSourceOptions,
): Promise<Findings> {
  const parts: SourcePart[] = [];
  const problem = (where: string, what: string) => parts.push(part(where, 'left-out', what));
  for (const [index, path] of candidates.entries()) {
    try {
      const content = await readBounded(path, { maxBytes: maxDockerConfigBytes, root });
      const format = basename(path) === '.dockercfg' ? 'dockercfg' : 'config.json';
      const { held, skipped } = holdEntries(parseDockerConfig(content, format), path);
      const what = `in use: the first readable candidate; entries: ${held.length}`;
      parts.push(part(path, 'used', what, [slower]));
      if (skipped > 0) problem(path, `entries skipped because their keys are not registries: ${skipped}`);
      for (const where of candidates.slice(index + 1))
        parts.push(part(where, 'unused', 'not read, because an earlier candidate is in use'));
      return { held, parts };
    } catch (error) {
      if (error instanceof FileError && error.code === 'missing') {
        parts.push(part(path, 'absent', 'there is no such file'));
        continue;
      }
      if (!(error instanceof FileError || error instanceof DockerConfigError)) throw error;
      problem(path, error.message);
    }
  }
  const isProblem = isRequired && parts.every(({ state }) => state === 'absent');
  return { held: [], parts: isProblem ? parts.map((each) => ({ ...each, state: 'left-out' })) : parts };
}

/** The file of `docker login`. Logins in a helper are empty entries (see `credential-helpers.ts`). */
export function dockerLoginCandidates(
  environment: Readonly<Record<string, string | undefined>>,
  home: string,
): readonly string[] {
  const directory = environment['DOCKER_CONFIG'] || join(home, '.docker');
  return [join(directory, 'config.json')];
}
