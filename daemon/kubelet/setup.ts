/** The configuration of the node's plugins with the state of their programs. */
import { textFingerprint } from '../../src/credentials/identity.ts';
import { ProviderConfigError, type ProviderConfig } from './config/provider-config.ts';
import { readConfig } from './config/read-config.ts';
import { validateConfig } from './config/validate-config.ts';
import { tokenReason } from './provider/provider.ts';
import { checkBinary } from './run/binary.ts';
import { PluginError, type PluginErrorCode } from './run/plugin-error.ts';

export interface PluginSetup {
  readonly providers: readonly ProviderConfig[];
  /** The configuration is a directory of files. */
  readonly isDirectory: boolean;
  /** Plugins that do not run, by name. */
  readonly leftOut: ReadonlyMap<string, LeftOut>;
  /** Equal for equal content and equally usable programs. */
  readonly id: string;
  readonly fingerprint: string;
}

/** Why a plugin does not run. */
export interface LeftOut {
  readonly code: PluginErrorCode;
  readonly reason: string;
}

export interface SetupOptions {
  /** Directory that stands for `/`. */
  readonly hostRoot: string;
  /** A file or a directory, inside the host root. */
  readonly config: string;
  /** Directory of the plugins, inside the host root. */
  readonly binDir: string;
  /** Whether plugins with `tokenAttributes` can have tokens. */
  readonly hasTokens: boolean;
  /** Why not, for people. */
  readonly noTokens?: string | undefined;
}

/** @throws ProviderConfigError */
export async function readSetup(options: SetupOptions): Promise<PluginSetup> {
  const { hostRoot, config } = options;
  const { providers, hash, isDirectory } = await readConfig(config, hostRoot);
  const problems = validateConfig(providers);
  if (problems !== undefined) {
    const message = `failed to validate credential provider config: ${problems}`;
    throw new ProviderConfigError('invalid', config, message);
  }
  const leftOut = new Map<string, LeftOut>();
  for (const provider of providers) {
    const problem = await pluginProblem(provider, options);
    if (problem !== undefined) leftOut.set(provider.name, problem);
  }
  const id = JSON.stringify([hash, providers.map(({ name }) => leftOut.get(name)?.code ?? 'usable')]);
  return {
    providers,
    isDirectory,
    leftOut,
    id,
    fingerprint: await textFingerprint('credential-provider', id),
  };
}

async function pluginProblem(
  { name, tokenAttributes }: ProviderConfig,
  options: SetupOptions,
): Promise<LeftOut | undefined> {
  try {
    await checkBinary(name, options);
  } catch (error) {
    if (!(error instanceof PluginError)) throw error;
    return { code: error.code, reason: error.message };
  }
  if (tokenAttributes === undefined || options.hasTokens) return undefined;
  const why = options.noTokens === undefined ? '' : ` (${options.noTokens})`;
  return { code: 'no-token', reason: tokenReason + why };
}

/** A plugin without tokens may be intended, so it does not make the setup incomplete. */
export function isComplete({ leftOut }: PluginSetup): boolean {
  return [...leftOut.values()].every(({ code }) => code === 'no-token');
}
