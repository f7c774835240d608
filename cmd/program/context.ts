/** How subcommands start: services with a live configuration and a JSON log, others with plain log lines. */
import { aborted } from '../../src/async/wait.ts';
import {
  loadConfiguration,
  type ConfigurationSources,
} from '../../src/policy/configuration/configuration.ts';
import { liveConfiguration } from '../../src/policy/configuration/live.ts';
import { ConfigurationError, describeProblem } from '../../src/policy/configuration/layer.ts';
import { createLog, type Log, type LogLevel } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { keepMemoryPrivate, addProcessMetrics } from '../../src/telemetry/process.ts';
import type { DockerConfigs } from '../wiring/inspection.ts';
import type { Flags } from './flag.ts';
import { stoppedCode } from './exit.ts';
import type { Invocation, Streams, Subcommand } from './subcommand.ts';
import { programVersion } from './version.ts';

/** Closes a resource; for the second argument of `AsyncDisposableStack.adopt`. */
export function close(resource: { close(): Promise<void> | void }): Promise<void> | void {
  return resource.close();
}

/**
 * @param opened stops following the configuration
 * @throws ConfigurationError if the first configuration is broken
 */
export async function startup(
  { sources, io }: Pick<Invocation, 'sources' | 'io'>,
  opened: AsyncDisposableStack,
) {
  keepMemoryPrivate();
  const log = createLog({ destination: { write: (line) => io.err(line) } });
  const metrics = createMetrics();
  addProcessMetrics(metrics, programVersion);
  const live = opened.adopt(await liveConfiguration({ ...sources, log, metrics }), close);
  log.level = live.current().logLevel;
  live.onChange(({ logLevel }) => {
    log.level = logLevel;
  });
  return { live, configuration: () => live.current(), env: io.env, log, metrics };
}

export type CliContext = Awaited<ReturnType<typeof openCliContext>>;

/** @param cluster the configuration of the cluster's archwright @throws ConfigurationError */
export async function openCliContext(
  { sources, io, say }: Invocation,
  cluster?: ConfigurationSources['cluster'],
) {
  const loaded = await loadConfiguration({ ...sources, cluster });
  if (!loaded.configuration) throw new ConfigurationError(loaded.problems);
  const { configuration, origins, ignored } = loaded;
  for (const problem of ignored) say(`ignored: ${describeProblem(problem)}`, 'warning');
  // A person's docker login counts too, unless `hostRoot` is set: then the kubelet's files below it do.
  const dockerConfigs: DockerConfigs = origins.hostRoot.kind === 'default' ? 'user' : 'node';
  return {
    configuration,
    dockerConfigs,
    log: createPlainLog(io, origins.logLevel.kind === 'default' ? 'warn' : configuration.logLevel),
    /** Never served. */
    metrics: createMetrics(),
  };
}

/** Runs until the program gets a signal to stop. Unfinished work then ends with the process. */
export function untilStopped<F extends Flags>(run: Subcommand<F>['run']): Subcommand<F>['run'] {
  return (invocation) => {
    const { stop } = invocation;
    return Promise.race([aborted(stop).then(() => stoppedCode(stop)), run(invocation)]);
  };
}

/** A log of plain lines on standard error. Secrets are scrubbed as in every log. */
export function createPlainLog(io: Pick<Streams, 'err'>, level: LogLevel): Log {
  return createLog({ level, destination: { write: (line) => io.err(plainLine(line)) } });
}

function plainLine(line: string): string {
  const { level, time: _, msg, ...fields } = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const details = Object.entries(fields).map(
    ([name, value]) => `${name === 'err' ? 'error' : name} ${textOf(value)}`,
  );
  const message = [textOf(msg), ...(details.length > 0 ? [details.join(', ')] : [])].join(': ');
  return `archwright: ${textOf(level)}: ${message}\n`;
}

/** pino writes errors as objects with message and stack. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && value !== null && 'message' in value) return textOf(value.message);
  return JSON.stringify(value);
}
