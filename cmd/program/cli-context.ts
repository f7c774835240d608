/**
 * Start of the one-shot subcommands (`inspect`, `explain`, …): the configuration, a log for people, and where this machine
 * keeps its credentials.
 */
import { loadConfiguration, type Configuration } from '../../src/policy/configuration/configuration.ts';
import { ConfigurationError } from '../../src/policy/configuration/problem.ts';
import type { Log } from '../../src/telemetry/log.ts';
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts';
import type { DockerConfigs } from '../wiring/inspection.ts';
import { createPlainLog } from './plain-log.ts';
import { stopped, stoppedCode } from './signals.ts';
import { UsageError, type Invocation } from './subcommand.ts';

export interface CliContext {
  readonly configuration: Configuration;
  /**
   * With `hostRoot`, the docker configurations are the kubelet's below it. Otherwise this is a person's machine, and their
   * docker login counts too.
   */
  readonly dockerConfigs: DockerConfigs;
  readonly log: Log;
  /** Never served. */
  readonly metrics: Metrics;
}

/**
 * Reads the configuration.
 * @throws ConfigurationError
 */
export async function openCliContext({ sources, io }: Invocation): Promise<CliContext> {
  const loaded = await loadConfiguration(sources);
  if (!loaded.configuration) throw new ConfigurationError(loaded.problems);
  const { configuration, origins } = loaded;
  const level = origins.logLevel.kind === 'default' ? 'warn' : configuration.logLevel;
  return {
    configuration,
    dockerConfigs: origins.hostRoot.kind === 'default' ? 'user' : 'node',
    log: createPlainLog(io, level),
    metrics: createMetrics(),
  };
}

/**
 * Does the work until the program is told to stop. Unfinished work then ends with the process.
 * @returns the exit code
 */
export async function untilStopped(stop: AbortSignal, work: () => Promise<number>): Promise<number> {
  return await Promise.race([stopped(stop).then(() => stoppedCode(stop)), work()]);
}

/**
 * The value of `--output`.
 * @param known the first is the default
 * @throws UsageError
 */
export function outputOf<Name extends string>(
  where: string,
  { flags }: Pick<Invocation, 'flags'>,
  known: readonly [Name, ...Name[]],
): Name {
  const given = flags.get('output')?.at(-1);
  if (given === undefined) return known[0];
  const output = known.find((name) => name === given);
  if (output === undefined) {
    throw new UsageError(where, `--output must be ${known.join(' or ')}, not ${given}`);
  }
  return output;
}
