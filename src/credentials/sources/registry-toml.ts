/**
 * Registry TOML files: `creds/<registry>.toml` with `user` and `secret`, one file per registry, usually mounted from a
 * Secret. The file's name without `.toml` is the key and matches like any other key: `docker.io.toml`,
 * `registry.corp:5000.toml`, `*.corp.example.toml`. Keys of a Secret cannot contain a colon, so a port may also be
 * written as in containerd's directory names: `registry.corp_5000_.toml`. Both `docker.io.toml` and `index.docker.io.toml` are for
 * Docker Hub; the first one has priority.
 */
import { join } from 'node:path';
import { parse } from 'toml';
import { readDirectory } from '../../files/directory.ts';
import { decodeUtf8, FileError } from '../../files/read.ts';
import { secret } from '../../telemetry/secret.ts';
import type { SourcePart } from '../../files/source-part.ts';
import type { Credential, SourceProblem, HeldCredential } from '../credential.ts';
import {
  createFileSource,
  type FileSourceOptions,
  type Findings,
  type LiveCredentialSource,
} from './file-source.ts';
import { indexKey } from '../keyring/key.ts';

/** The largest Secret Kubernetes stores has 1 MiB; these files have two lines. */
const maxBytes = 64 * 1024;
/** Files and the volume's own links; far more registries than any cluster uses. */
const maxEntries = 2000;

interface RegistryTomlSourceOptions extends FileSourceOptions {
  /** The directory; a missing one counts as empty. */
  readonly dir: string;
}

/** Reads the directory, and again when it changes. */
export async function createRegistryTomlSource(
  options: RegistryTomlSourceOptions,
): Promise<LiveCredentialSource> {
  let last = new Map<string, HeldCredential>();

  /** A file that breaks keeps its last good credential; a removed file does not. */
  async function read(): Promise<Findings> {
    const problems: SourceProblem[] = [];
    const next = new Map<string, HeldCredential>();
    const files = await readFiles(options);
    const parts: SourcePart[] = [describeDirectory(options.dir, files?.size)];
    for (const [name, content] of files ?? []) {
      const origin = join(options.dir, name);
      try {
        if (content instanceof FileError) throw content;
        const key = registryKey(name);
        next.set(name, { key, credential: parseRegistryToml(decodeUtf8(content, origin)), origin });
        parts.push({ where: origin, state: 'used', what: `a credential for ${key}` });
      } catch (error) {
        if (!(error instanceof FileError || error instanceof RegistryTomlError)) throw error;
        const before = last.get(name);
        if (before !== undefined) next.set(name, before);
        const consequence = before === undefined ? '' : '; its last good content stays in force';
        const message = error.message + consequence;
        problems.push({ source: 'registry-toml', origin, message });
        parts.push({ where: origin, state: 'left-out', what: message });
      }
    }
    last = next;
    return { held: [...next.values()], problems, parts };
  }

  return createFileSource('registry-toml', [options.dir], read, options);
}

/** The fault of a file, for people; quotes no value. */
export class RegistryTomlError extends Error {
  readonly code = 'malformed';
  readonly temporary = false;
  override readonly name = 'RegistryTomlError';
}

/** @throws RegistryTomlError */
export function parseRegistryToml(text: string): Credential {
  const { user, secret: password } = parseToml(text);
  if (typeof user !== 'string' || user === '') throw new RegistryTomlError('user must be a text');
  if (typeof password !== 'string' || password === '') throw new RegistryTomlError('secret must be a text');
  return { username: user, password: secret(password) };
}

/** The key in a file's name. @throws RegistryTomlError */
export function registryKey(fileName: string): string {
  const name = fileName.slice(0, -suffix.length).replace(/_(\d+)_$/, ':$1');
  const key = indexKey(name);
  if (key === undefined || key === '') throw new RegistryTomlError('its name is not that of a registry');
  return key;
}

const suffix = '.toml';

async function readFiles({
  dir,
  root,
}: RegistryTomlSourceOptions): Promise<ReadonlyMap<string, Buffer | FileError> | undefined> {
  try {
    const wanted = (name: string) => name.endsWith(suffix);
    return await readDirectory(dir, { wanted, maxEntries, maxBytes, root });
  } catch (error) {
    if (error instanceof FileError && error.code === 'missing') return undefined;
    throw error;
  }
}

/** @param files their number; undefined if there is no directory */
function describeDirectory(where: string, files: number | undefined): SourcePart {
  if (files === undefined) return { where, state: 'absent', what: 'there is no such directory' };
  if (files === 0) return { where, state: 'unused', what: 'holds no file <registry>.toml' };
  const differs = [
    'the kubelet does not have these credentials: the node pulls such an image only with a pull secret or with ' +
      'credentials of its own',
  ];
  return { where, state: 'used', what: `files: ${files}`, differs };
}

function parseToml(text: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text) as Record<string, unknown>;
  } catch (error) {
    // The parser's own message may quote the line, which may hold the secret.
    // Syntax errors and semantic errors, such as a duplicate key, have different members.
    const { line, location } = error as { line?: number; location?: { start: { line: number } } };
    const at = line ?? location?.start.line;
    throw new RegistryTomlError(`is not valid TOML${at === undefined ? '' : ` (line ${at})`}`);
  }
}
