/**
 * Registry TOML files: `creds/<registry>.toml` with `user` and `secret`, one file per registry, usually
 * mounted from a Secret. The file's name without `.toml` is the key and matches like any other key:
 * `docker.io.toml`, `registry.corp:5000.toml`, `*.corp.example.toml`. Keys of a Secret cannot contain a
 * colon, so a port may also be written as in containerd's directory names: `registry.corp_5000_.toml`. Both
 * `docker.io.toml` and `index.docker.io.toml` are for Docker Hub; the first one has priority.
 */
import { join } from 'node:path';
import { parse } from 'toml';
import { decodeUtf8, FileError, readDirectory, undefinedIfMissing } from '../../files/read.ts';
import { secret } from '../../telemetry/secret.ts';
import { part, type SourcePart } from '../../files/source-part.ts';
import type { Credential, HeldCredential } from '../credential.ts';
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
  /** A missing directory is a problem. */
  readonly dir: string;
  /** Names of files that it must have. */
  readonly expected?: readonly string[] | undefined;
}

/** Reads the directory, and again when it changes. */
export async function createRegistryTomlSource(
  options: RegistryTomlSourceOptions,
): Promise<LiveCredentialSource> {
  let last = new Map<string, HeldCredential>();

  /** A file that breaks keeps its last good credential; a removed file does not. */
  async function read(): Promise<Findings> {
    const next = new Map<string, HeldCredential>();
    const { dir, root } = options;
    const bounds = { wanted: () => true, maxEntries, maxBytes, root };
    const files = await readDirectory(dir, bounds).catch(undefinedIfMissing);
    const parts: SourcePart[] = [];
    const problem = (where: string, what: string) => parts.push(part(where, 'left-out', what));
    if (files === undefined) problem(options.dir, 'there is no such directory');
    else
      parts.push(
        describeDirectory(options.dir, [...files.keys()].filter((name) => name.endsWith(suffix)).length),
      );
    for (const [name, content] of files ?? []) {
      const origin = join(options.dir, name);
      if (!name.endsWith(suffix)) {
        if (isCredential(content)) problem(origin, `is not read; it must be named ${properName(name)}`);
        continue;
      }
      try {
        if (content instanceof FileError) throw content;
        const key = registryKey(name);
        next.set(name, { key, credential: parseRegistryToml(decodeUtf8(content, origin)), origin });
        parts.push(part(origin, 'used', `a credential for ${key}`));
        const doubt = doubtAbout(key, name);
        if (doubt !== undefined) problem(origin, doubt);
      } catch (error) {
        if (!(error instanceof FileError || error instanceof RegistryTomlError)) throw error;
        const before = last.get(name);
        if (before !== undefined) next.set(name, before);
        const consequence = before === undefined ? '' : '; its last good content stays in force';
        problem(origin, error.message + consequence);
      }
    }
    for (const name of options.expected ?? []) {
      if (files?.has(name) === false) problem(join(options.dir, name), missingKey(name));
    }
    last = next;
    return { held: [...next.values()], parts };
  }

  return createFileSource('registry-toml', [options.dir], read, options);
}

/** The fault of a file, for people; quotes no value. */
export class RegistryTomlError extends Error {
  override readonly name = 'RegistryTomlError';
}

/** @throws RegistryTomlError */
export function parseRegistryToml(text: string): Credential {
  const { user, secret: password } = parseToml(text);
  if (typeof user !== 'string' || user === '')
    throw new RegistryTomlError('user must be a string, as in user = "NAME"');
  if (typeof password !== 'string' || password === '')
    throw new RegistryTomlError('secret must be a string, as in secret = "PASSWORD"');
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

function isCredential(content: Buffer | FileError): boolean {
  try {
    if (content instanceof FileError) return false;
    parseRegistryToml(decodeUtf8(content, ''));
    return true;
  } catch (error) {
    if (error instanceof FileError || error instanceof RegistryTomlError) return false;
    throw error;
  }
}

/** The name that a file with another ending was meant to have. */
function properName(name: string): string {
  const bare = name.replace(/\.(?:to?ml?|tmol|ya?ml|json|conf|txt)$/i, '');
  return withPort(bare) ?? bare + suffix;
}

/** `registry.corp_5000.toml` for `registry.corp:5000`, and for misspellings of it. */
function withPort(name: string): string | undefined {
  const [, host, port] = /^([^_]+?)[_:]+(\d{2,5})_*$/.exec(name) ?? [];
  return host === undefined ? undefined : `${host}_${port}_${suffix}`;
}

/** Why a credential probably matches no image, and the name that was probably meant. */
function doubtAbout(key: string, fileName: string): string | undefined {
  const meant = withPort(key);
  if (meant !== undefined && key.includes('_')) {
    return `${fileName} is the registry ${key}; with a port it must be named ${meant}`;
  }
  // distribution/reference `splitDockerDomain`: anything else before the first slash is a path on Docker Hub.
  if (/[.:*[]/.test(key) || key === 'localhost') return undefined;
  return `no image names a registry ${key}: it has neither a dot nor a port`;
}

function missingKey(name: string): string {
  const port = /_\d+_\.toml$/.test(name) ? ', in which a port is written _5000_' : '';
  return `there is no such file; check that its Secret exists and has the key ${name}${port}`;
}

/** @param files their number */
function describeDirectory(where: string, files: number): SourcePart {
  if (files === 0) return part(where, 'unused', 'holds no file <registry>.toml');
  const difference =
    'the kubelet does not have these credentials: the node pulls such an image only with a pull secret or with ' +
    'credentials of its own';
  return part(where, 'used', `files: ${files}`, [difference]);
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
