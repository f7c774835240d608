/** Watches the records of broken images in archwright's namespace. */
import { watchBrokenImages, type WatchedBrokenImages } from '../../src/cluster/broken-images.ts';
import type { LiveConfiguration } from '../../src/policy/configuration/live.ts';
import { systemClock } from '../../src/async/clock.ts';
import type { Log } from '../../src/telemetry/log.ts';
import { withOwnNamespace, type Kubernetes } from './kubernetes.ts';

/**
 * Starts the watch.
 * @returns undefined if the namespace is unknown
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
