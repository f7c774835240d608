/** What `ClusterPodPlacementConfig/cluster` overrides beside placement: log level, exec format monitor. */
import type { LogLevel } from '../../telemetry/log.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { LiveConfiguration } from '../configuration/live.ts';
import type { ResourceCollection } from './collection.ts';
import type { ClusterPlacement, LogVerbosity } from './placement.ts';

const levels: Readonly<Record<LogVerbosity, LogLevel>> = {
  Normal: 'info',
  Debug: 'debug',
  Trace: 'trace',
  TraceAll: 'trace',
};

/**
 * The configuration for everything but placement (`policies.ts`).
 * @returns a function that returns the same object until something changes
 */
export function overlaid(
  configuration: () => Configuration,
  resources: Pick<ResourceCollection, 'cluster'>,
): () => Configuration {
  let made: { from: Configuration; cluster: ClusterPlacement | undefined; result: Configuration } | undefined;
  return () => {
    const from = configuration();
    const cluster = resources.cluster();
    if (made?.from !== from || made.cluster !== cluster)
      made = { from, cluster, result: over(from, cluster) };
    return made.result;
  };
}

function over(configuration: Configuration, cluster: ClusterPlacement | undefined): Configuration {
  const { logVerbosity, execFormatErrorMonitor } = cluster ?? {};
  if (logVerbosity === undefined && execFormatErrorMonitor === undefined) return configuration;
  return {
    ...configuration,
    ...(logVerbosity !== undefined && { logLevel: levels[logVerbosity] }),
    ...(execFormatErrorMonitor !== undefined && { execFormatErrorMonitor }),
  };
}

/** Sets the level of a log, now and after each change. */
export function followLogLevel(options: {
  readonly log: { level: string };
  readonly configuration: Pick<LiveConfiguration, 'current' | 'onChange'>;
  readonly resources: ResourceCollection;
}): void {
  const { log, configuration, resources } = options;
  const effective = overlaid(() => configuration.current(), resources);
  const follow = (): void => {
    log.level = effective().logLevel;
  };
  follow();
  configuration.onChange(follow);
  resources.onChange(follow);
}
