/** Start of the long-running subcommands: live configuration, a log that follows its level, metrics. */
import { liveConfiguration, type LiveConfiguration } from '../../src/policy/configuration/live.ts';
import { keepMemoryPrivate } from '../../src/telemetry/private-memory.ts';
import { createLog, type Log } from '../../src/telemetry/log.ts';
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts';
import { addProcessMetrics } from '../../src/telemetry/process.ts';
import type { Invocation } from './subcommand.ts';
import { programVersion } from './version.ts';

export interface Startup {
  readonly configuration: LiveConfiguration;
  readonly log: Log;
  readonly metrics: Metrics;
}

/**
 * Reads the configuration and sets up telemetry. Close `configuration` at the end.
 * @throws ConfigurationError if the first configuration is broken
 */
export async function startup({ sources, io }: Invocation): Promise<Startup> {
  keepMemoryPrivate();
  const log = createLog({ destination: { write: (line) => io.err(line) } });
  const metrics = createMetrics();
  addProcessMetrics(metrics, programVersion);
  const configuration = await liveConfiguration({ ...sources, log, metrics });
  log.level = configuration.current().logLevel;
  configuration.onChange(({ logLevel }) => {
    log.level = logLevel;
  });
  return { configuration, log, metrics };
}
