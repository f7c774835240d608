/** A watch of one object by its name, which needs the right to that name only. It tells of changes and keeps nothing. */
import type { Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { KubeClient } from '../api/client.ts';
import { startReflector, type Reflector } from './reflector.ts';

export interface NamedWatchOptions {
  readonly client: KubeClient;
  /** Path of the collection. */
  readonly path: string;
  readonly name: string;
  /** Hears of each change, and of the first answer. */
  readonly onChange: () => void;
  readonly log: Log;
  readonly clock: Clock;
}

/** Starts at once; ends with `stop`. */
export function watchNamed({ name, onChange, ...common }: NamedWatchOptions): Pick<Reflector<true>, 'stop'> {
  const watch = startReflector<true>({
    ...common,
    fieldSelector: `metadata.name=${name}`,
    trim: () => true,
  });
  watch.onChange(onChange);
  return watch;
}
