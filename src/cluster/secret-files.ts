/**
 * A Secret of archwright as files of a process that reads it from the API server. A mounted Secret must exist
 * before the pod starts and comes up to two minutes late; the first leader writes these Secrets itself.
 */
import { systemClock, type Clock } from '../async/clock.ts';
import { unlessAborted } from '../async/wait.ts';
import type { KubeClient } from '../kube/api/client.ts';
import type { KubeObject, Secret } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { watchNamed } from '../kube/watch/reflector.ts';
import { pathSecretKeys } from '../names/keys.ts';
import { messageOf } from '../names/printable.ts';
import { replaceFiles, tlsFileNames, type FileContents } from '../serving/tls-directory.ts';
import { loadTlsMaterial } from '../serving/tls-files.ts';
import type { Log } from '../telemetry/log.ts';

interface Kind {
  readonly required: readonly string[];
  /** Keys that it may have; without one, the file is empty. */
  readonly optional: readonly string[];
  /** Rejects if the files in a directory cannot be used. */
  readonly check: (dir: string) => Promise<unknown>;
}

const kinds = {
  tls: { required: tlsFileNames, optional: [], check: (dir) => loadTlsMaterial(dir, true) },
  path: {
    required: [pathSecretKeys.current],
    optional: [pathSecretKeys.previous, pathSecretKeys.recordKey],
    check: () => Promise.resolve(),
  },
} satisfies Readonly<Record<string, Kind>>;

interface KeepSecretFilesOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly secretName: string;
  readonly kind: keyof typeof kinds;
  /** Directory for the files; created if it is missing. No other program writes there. */
  readonly dir: string;
  readonly log: Log;
  readonly clock?: Clock;
}

/** Retry after a failed write of the files, even if the Secret does not change. */
const retryMs = 10_000;

/** Follows the Secret from now on. If its content cannot be used, the last good files stay. */
export function keepSecretFiles(options: KeepSecretFilesOptions) {
  const { client, namespace, secretName, dir, clock = systemClock, log } = options;
  const kind: Kind = kinds[options.kind];
  const first = Promise.withResolvers<void>();
  let queue: Promise<void> = Promise.resolve();
  let closed = false;
  let lastProblem = '';
  let cancelRetry = (): void => undefined;

  const watch = watchNamed<FileContents>({
    client,
    path: paths.secrets(namespace),
    name: secretName,
    trim: (object) => filesIn(object, kind),
    onChange: changed,
    log,
    clock,
  });

  async function keep(): Promise<void> {
    const files = watch.get(namespace, secretName);
    if (closed || files === undefined) return;
    try {
      if (await replaceFiles(dir, files, kind.check))
        log.info({ dir, secret: secretName }, 'the files of a Secret were written');
      lastProblem = '';
      first.resolve();
    } catch (error) {
      const problem = messageOf(error);
      if (problem !== lastProblem)
        log.error({ dir, secret: secretName, problem }, 'the files of a Secret cannot be written');
      lastProblem = problem;
      cancelRetry();
      cancelRetry = clock.timer(retryMs, changed);
    }
  }

  function changed(): void {
    queue = queue.then(keep);
  }

  return {
    /** Resolves when the directory has usable files; rejects with the signal's reason. */
    ready: (signal: AbortSignal): Promise<void> => unlessAborted(first.promise, signal),
    close: async (): Promise<void> => {
      closed = true;
      cancelRetry();
      watch.stop();
      await queue;
    },
  };
}

/** @returns `undefined`: a file is missing, and another write will add it */
function filesIn(object: KubeObject, { required, optional }: Kind): FileContents | undefined {
  const { data = {} } = object as Secret;
  const names = [...required, ...optional];
  const files = Object.fromEntries(names.map((name) => [name, Buffer.from(data[name] ?? '', 'base64')]));
  return required.every((name) => (files[name]?.length ?? 0) > 0) ? files : undefined;
}
