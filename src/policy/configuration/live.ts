/**
 * The configuration of a running program. A changed file is read again with the same environment and flags. A
 * broken file is logged with its positions, and the last good configuration stays in force.
 */
import { dirname, resolve } from 'node:path';
import { liveContent } from '../../files/live.ts';
import type { WatchOptions } from '../../files/live.ts';
import { systemClock, type Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import { counter, gauge, type Metrics, type MetricSpec } from '../../telemetry/metrics.ts';
import { loadConfiguration, type Configuration, type ConfigurationSources } from './configuration.ts';
import { ConfigurationError } from './layer.ts';
import { settings } from '../settings/all.ts';

const reloads = counter(
  'archwright_config_reloads_total',
  'Changes of the configuration file. If one fails, the last good one stays in force.',
  { outcome: ['loaded', 'failed'] },
);

const lastReloadSuccessful = gauge(
  'archwright_config_last_reload_successful',
  'Set to 0 if an older configuration file is in force.',
);

const lastReloadSuccess = gauge(
  'archwright_config_last_reload_success_timestamp_seconds',
  'When the configuration in force was read.',
);

export const configurationInfo: MetricSpec = gauge(
  'archwright_configuration_info',
  'Always 1. `hash`: the first 12 digits of the SHA-256 of the configuration file in force.',
  { hash: [] },
);

export const configurationMetrics = [reloads, lastReloadSuccessful, lastReloadSuccess, configurationInfo];

export interface LiveConfigurationOptions extends ConfigurationSources {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly clock?: Clock;
  readonly watch?: Pick<WatchOptions, 'pollMs' | 'debounceMs'>;
}

export type LiveConfiguration = Awaited<ReturnType<typeof liveConfiguration>>;

/** @throws ConfigurationError if the first reading finds a problem */
export async function liveConfiguration(options: LiveConfigurationOptions) {
  const { file, log, metrics, clock = systemClock } = options;
  const counts = {
    loaded: metrics.counter(reloads, { outcome: 'loaded' }),
    failed: metrics.counter(reloads, { outcome: 'failed' }),
  };
  const successful = metrics.gauge(lastReloadSuccessful);
  const success = metrics.gauge(lastReloadSuccess);
  const setInfo = metrics.info(configurationInfo);
  const listeners: ((configuration: Configuration) => void)[] = [];

  async function read(): Promise<Configuration> {
    const loaded = await loadConfiguration(options);
    const { configuration } = loaded;
    successful.set(configuration ? 1 : 0);
    if (!configuration) throw new ConfigurationError(loaded.problems);
    setInfo({ hash: loaded.hash ?? 'none' });
    success.set(Math.floor(clock.now() / 1000));
    return configuration;
  }

  function changed(configuration: Configuration): void {
    const keys = changedKeys(inForce, configuration);
    inForce = configuration;
    counts.loaded.inc();
    log.info({ file, changed: keys }, 'configuration changed');
    const waiting = keys.filter((key) => settings[key].restart);
    if (waiting.length > 0) {
      log.warn({ file, changed: waiting }, 'changed settings take effect when the program starts again');
    }
    for (const listener of listeners) listener(configuration);
  }

  function broken(error: Error): void {
    // The first reading's problem is thrown, not logged.
    if (!started) return;
    counts.failed.inc();
    const [first] = error instanceof ConfigurationError ? error.problems : [];
    log.error(
      { file, line: first?.line, ...(first?.key && { key: first.key }), problem: error.message },
      'configuration is broken, the last good one stays in force',
    );
  }

  let started = false;
  const content = await liveContent({
    ...options.watch,
    read,
    fingerprint: (configuration) => JSON.stringify(configuration),
    dirs: file === undefined ? [] : [dirname(resolve(file))],
    onChange: changed,
    onProblem: broken,
    log,
  });
  started = true;
  const first = content.current();
  if (!first) {
    await content.close();
    throw content.problem() ?? new ConfigurationError([]);
  }
  let inForce = first;

  return {
    /** The last good configuration; the same object until there is a new one. */
    current: () => inForce,
    /** Calls back after each change; not with the first configuration. The listener must not throw. */
    onChange: (listener: (configuration: Configuration) => void): void => void listeners.push(listener),
    refresh: () => content.refresh(),
    close: () => content.close(),
  };
}

function changedKeys(before: Configuration, after: Configuration): (keyof Configuration)[] {
  const keys = Object.keys(settings) as (keyof Configuration)[];
  return keys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
}

/** Calls `make` once for each configuration, so that the same configuration gives the same value. */
export function derived<T>(
  configuration: () => Configuration,
  make: (configuration: Configuration) => T,
): () => T {
  let last: { readonly from: Configuration; readonly value: T } | undefined;
  return () => {
    const from = configuration();
    if (last?.from !== from) last = { from, value: make(from) };
    return last.value;
  };
}
