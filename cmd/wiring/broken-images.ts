/** The notes on broken images, where a part runs in a cluster and knows its own namespace. */
import { watchBrokenImages, type WatchedBrokenImages } from '../../src/cluster/broken-images.ts';
import type { LiveConfiguration } from '../../src/policy/configuration/live.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import { withOwnNamespace, type Kubernetes } from './kubernetes.ts';

/**
 * Starts to watch them.
 * @returns undefined where the namespace is not known
 */
export function followBrokenImages(options: {
  readonly configuration: LiveConfiguration;
  readonly kubernetes: Kubernetes;
  readonly log: Log;
}): WatchedBrokenImages | undefined {
  const { configuration, kubernetes, log } = options;
  const { namespace, brokenImagesName: name } = withOwnNamespace(() => configuration.current(), kubernetes)();
  if (namespace === undefined) return undefined;
  return watchBrokenImages({ client: kubernetes.client, namespace, name, clock: systemClock, log });
}
