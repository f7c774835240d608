/**
 * The configuration of the node's plugins: one file, or all `.json`, `.yaml` and `.yml` files of a directory
 * in the order of their names (kubernetes pkg/credentialprovider/plugin/config.go
 * `readCredentialProviderConfig`; directories since Kubernetes 1.34), and the state of the plugins' programs.
 * One invalid file makes the whole configuration invalid.
 */
import { extname, join } from 'node:path';
import { ifError } from '../../../src/async/if-error.ts';
import { readDirectory, FileError, decodeUtf8, readBounded, statPath } from '../../../src/files/read.ts';
import { checkBinary, type PluginPath } from '../run/binary.ts';
import { PluginError, type PluginErrorCode } from '../run/plugin-error.ts';
import { decodeConfig, type ProviderConfig } from './provider-config.ts';
import { DecodeError } from './strict.ts';
import { validateConfig } from './validate-config.ts';

/** Configurations of clouds are hundreds of times smaller. */
const maxBytes = 1_048_576;
/** Directories of configurations have a few entries. */
const maxEntries = 1000;

const extensions: ReadonlySet<string> = new Set(['.json', '.yaml', '.yml']);

/** Why a configuration cannot be used, in the kubelet's words if possible. Quotes no value of a variable. */
export class ProviderConfigError extends Error {
  override readonly name = 'ProviderConfigError';
}

export interface Plugin {
  readonly config: ProviderConfig;
  /** Why it does not run. */
  readonly leftOut?: { readonly code: PluginErrorCode; readonly reason: string } | undefined;
}

export interface SetupOptions extends PluginPath {
  /** A file or a directory, inside the host root. */
  readonly config: string;
  /** Why plugins with `tokenAttributes` cannot have tokens, for people. */
  readonly noTokens?: string | undefined;
}

/** @throws ProviderConfigError */
export async function readSetup(options: SetupOptions): Promise<readonly Plugin[]> {
  const { hostRoot, config } = options;
  const providers = await readConfig(config, hostRoot);
  const problems = validateConfig(providers);
  if (problems !== undefined)
    throw new ProviderConfigError(`failed to validate credential provider config: ${problems}`);
  const plugins: Plugin[] = [];
  for (const provider of providers)
    plugins.push({ config: provider, leftOut: await pluginProblem(provider, options) });
  return plugins;
}

/** Why a provider with `tokenAttributes` is left out. */
const tokenReason =
  'it needs a token of the pod’s service account (tokenAttributes), and the agent may not request one; ' +
  'images that only this plugin has credentials for are answered as unauthorized here';

async function pluginProblem(
  { name, tokenAttributes }: ProviderConfig,
  options: SetupOptions,
): Promise<Plugin['leftOut']> {
  const found = await checkBinary(name, options).catch(ifError(PluginError, (error) => error));
  if (found instanceof PluginError) return { code: found.code, reason: found.message };
  if (tokenAttributes === undefined || options.noTokens === undefined) return undefined;
  return { code: 'no-token', reason: `${tokenReason} (${options.noTokens})` };
}

/** Reads without validating. @param path a file or directory @throws ProviderConfigError */
export async function readConfig(path: string, root = '/'): Promise<readonly ProviderConfig[]> {
  if (path === '') throw new ProviderConfigError('credential provider config path is empty');
  const files = await readFiles(path, root, await isDirectoryAt(path, root));
  const providers = [...files].flatMap(([file, content]) => decodeFile(file, content));
  const names = providers.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) < index);
  const duplicate = `duplicate provider name ${JSON.stringify(twice)} found in configuration file(s)`;
  if (twice !== undefined) throw new ProviderConfigError(duplicate);
  return providers;
}

async function isDirectoryAt(path: string, root: string): Promise<boolean> {
  const found = await statPath(path, root).catch(ifError(FileError, ({ reason }) => reason));
  if (typeof found === 'object') return found.isDirectory();
  const reason = found ?? 'there is no such file';
  throw new ProviderConfigError(`unable to access path ${JSON.stringify(path)}: ${reason}`);
}

async function readFiles(path: string, root: string, isDirectory: boolean) {
  const files = new Map<string, Buffer>();
  try {
    if (!isDirectory) return files.set(path, await readBounded(path, { maxBytes, root }));
    const wanted = (name: string): boolean => extensions.has(extname(name));
    for (const [name, content] of await readDirectory(path, { wanted, maxEntries, maxBytes, root })) {
      // The kubelet ignores directories with any name.
      if (content instanceof FileError && content.code === 'not-a-file') continue;
      if (content instanceof FileError) throw content;
      files.set(join(path, name), content);
    }
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    throw new ProviderConfigError(`unable to read file ${error.message}`);
  }
  if (files.size > 0) return files;
  throw new ProviderConfigError(`no configuration files found in directory ${JSON.stringify(path)}`);
}

function decodeFile(file: string, content: Buffer): readonly ProviderConfig[] {
  try {
    return decodeConfig(decodeUtf8(content, file));
  } catch (error) {
    if (!(error instanceof DecodeError || error instanceof FileError)) throw error;
    throw new ProviderConfigError(`error decoding config ${JSON.stringify(file)}: ${error.message}`);
  }
}
