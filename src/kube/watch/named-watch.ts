/** A watch of one object by its name, which needs the right to that name only. It says that something happened, and keeps nothing. */
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
  /** Waits; injected by tests. */
  readonly sleep?: ((ms: number, signal: AbortSignal) => Promise<void>) | undefined;
}

/** Starts at once; ends with `stop`. */
export function watchNamed(options: NamedWatchOptions): Pick<Reflector<true>, 'stop'> {
  const { client, path, name, onChange, log, sleep } = options;
  const watch = startReflector<true>({
    client,
    path,
    fieldSelector: `metadata.name=${name}`,
    trim: () => true,
    log,
    ...(sleep && { sleep }),
  });
  watch.onChange(onChange);
  return watch;
}
