/**
 * Reads the configuration of plugins: one file, or all `.json`, `.yaml` and `.yml` files of a directory in the order of their names
 * (kubernetes pkg/credentialprovider/plugin/config.go `readCredentialProviderConfig`; directories since Kubernetes 1.34). One invalid
 * file makes the whole configuration invalid.
 */
import { createHash } from 'node:crypto';
import { extname, join } from 'node:path';
import { readDirectory } from '../../../src/files/directory.ts';
import { FileError } from '../../../src/files/error.ts';
import { decodeUtf8, readBounded, statPath } from '../../../src/files/read.ts';
import { decodeConfig } from './decode-config.ts';
import { ProviderConfigError, type ProviderConfig } from './provider-config.ts';
import { DecodeError } from './tree.ts';

/** Configurations of clouds are hundreds of times smaller. */
const maxBytes = 1_048_576;
/** Directories of configurations have a few entries. */
const maxEntries = 1000;

const extensions: ReadonlySet<string> = new Set(['.json', '.yaml', '.yml']);

export interface ReadConfig {
  /** From all files in order, not yet validated. */
  readonly providers: readonly ProviderConfig[];
  /** Of each file's length and bytes, as in the metrics of newer kubelets. */
  readonly hash: string;
  readonly isDirectory: boolean;
}

/**
 * @param path a file of any name, or a directory
 * @param root directory that stands for `/`
 * @throws ProviderConfigError in the kubelet's words
 */
export async function readConfig(path: string, root = '/'): Promise<ReadConfig> {
  if (path === '') throw new ProviderConfigError('missing', path, 'credential provider config path is empty');
  const isDirectory = await isDirectoryAt(path, root);
  const files = await readFiles(path, root, isDirectory);
  const providers = files.flatMap(({ file, content }) => decodeFile(file, content));
  const seen = new Set<string>();
  for (const { name } of providers) {
    if (seen.has(name)) {
      throw new ProviderConfigError(
        'invalid',
        path,
        `duplicate provider name ${JSON.stringify(name)} found in configuration file(s)`,
      );
    }
    seen.add(name);
  }
  return { providers, hash: hashOf(files.map(({ content }) => content)), isDirectory };
}

interface ReadFile {
  readonly file: string;
  readonly content: Buffer;
}

async function readFiles(path: string, root: string, isDirectory: boolean): Promise<ReadFile[]> {
  try {
    if (!isDirectory) return [{ file: path, content: await readBounded(path, { maxBytes, root }) }];
    const wanted = (name: string): boolean => extensions.has(extname(name));
    const found = await readDirectory(path, { wanted, maxEntries, maxBytes, root });
    const files = [...found].flatMap(([name, content]) => {
      // The kubelet ignores directories with any name.
      if (content instanceof FileError && content.code === 'not-a-file') return [];
      if (content instanceof FileError) throw content;
      return [{ file: join(path, name), content }];
    });
    if (files.length > 0) return files;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    throw new ProviderConfigError('missing', path, `unable to read file ${error.message}`);
  }
  throw new ProviderConfigError(
    'missing',
    path,
    `no configuration files found in directory ${JSON.stringify(path)}`,
  );
}

async function isDirectoryAt(path: string, root: string): Promise<boolean> {
  let reason = 'there is no such file';
  try {
    const stats = await statPath(path, root);
    if (stats !== undefined) return stats.isDirectory();
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    reason = error.reason;
  }
  throw new ProviderConfigError('missing', path, `unable to access path ${JSON.stringify(path)}: ${reason}`);
}

function decodeFile(file: string, content: Buffer): readonly ProviderConfig[] {
  try {
    return decodeConfig(decodeUtf8(content, file));
  } catch (error) {
    if (!(error instanceof DecodeError || error instanceof FileError)) throw error;
    throw new ProviderConfigError(
      'malformed',
      file,
      `error decoding config ${JSON.stringify(file)}: ${error.message}`,
    );
  }
}

function hashOf(contents: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const content of contents) {
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(content.length));
    hash.update(length).update(content);
  }
  return `sha256:${hash.digest('hex')}`;
}
