/** Runs a docker credential helper of the node or of a person's machine. */
import type { Credential } from '../src/credentials/credential.ts';
import {
  HelperConfigError,
  isHelperName,
  parseHelperAnswer,
  saysNotFound,
} from '../src/credentials/docker/credential-helpers.ts';
import { PluginError } from './kubelet/run/plugin-error.ts';
import {
  defaultRunLimits,
  runProgram,
  type Command,
  type ProgramRun,
  type RunLimits,
} from './kubelet/run/run.ts';
import { ConfigFileError } from './toml.ts';

/** Less than the limit of a lookup, so that an anonymous attempt is left. An answer has about 4 KiB. */
export const helperLimits: RunLimits = {
  ...defaultRunLimits,
  timeoutMs: 10_000,
  maxStdoutBytes: 256 * 1024,
};

/**
 * What `docker-credential-NAME get` prints.
 * @param commandOf finds the program
 * @returns `undefined`: it has no credential
 * @throws ConfigFileError if it cannot say
 */
export async function askHelper(
  name: string,
  server: string,
  commandOf: (plugin: string) => Command | Promise<Command>,
  { env, limits = helperLimits }: Pick<ProgramRun, 'env' | 'limits'>,
  stop: AbortSignal | undefined,
): Promise<Credential | undefined> {
  const plugin = `docker-credential-${name}`;
  try {
    if (!isHelperName(name)) throw new HelperConfigError('is not the name of a credential helper');
    const command = await commandOf(plugin);
    return parseHelperAnswer(await runProgram({ command, env, stdin: server, limits }, stop));
  } catch (error) {
    if (!(error instanceof PluginError || error instanceof HelperConfigError)) throw error;
    if (error instanceof PluginError && saysNotFound(error.stdout?.toString('utf8') ?? '')) return undefined;
    throw new ConfigFileError(plugin, `no credential for ${server}: ${error.message}`, error);
  }
}
