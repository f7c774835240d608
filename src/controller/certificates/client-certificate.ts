/**
 * A controller's own copy of its client certificate. A mounted Secret reaches a pod up to two minutes after it is written, and the first leader
 * of a new cluster writes it itself. So each replica, leading or not, follows the Secret and writes its content to a directory.
 */
import { systemClock, type Clock } from '../../async/clock.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { KubeObject, Secret } from '../../kube/api/objects.ts';
import { startReflector } from '../../kube/watch/reflector.ts';
import { unlessAborted } from '../../async/wait.ts';
import { replaceTlsFiles, tlsFileNames, type TlsFileContents } from '../../serving/tls-directory.ts';
import type { Log } from '../../telemetry/log.ts';
import { paths } from '../../kube/api/paths.ts';
import { messageOf } from '../../names/printable.ts';

interface KeepClientCertificateOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly secretName: string;
  /** Directory for the files; created if it is missing. No other program writes there. */
  readonly dir: string;
  readonly log: Log;
  readonly clock?: Clock;
}

/** After the files could not be written, and if the Secret does not change. */
const retryMs = 10_000;

/** Follows the Secret from now on. If its content cannot be used, the last good files stay. */
export function keepClientCertificate(options: KeepClientCertificateOptions) {
  const { client, namespace, secretName, dir, clock = systemClock, log } = options;
  const first = Promise.withResolvers<void>();
  let queue: Promise<void> = Promise.resolve();
  let closed = false;
  let lastProblem = '';
  let cancelRetry = (): void => undefined;

  const watch = startReflector<TlsFileContents>({
    client,
    path: paths.secrets(namespace),
    fieldSelector: `metadata.name=${secretName}`,
    trim: filesIn,
    log,
    clock,
  });

  async function keep(): Promise<void> {
    const files = watch.get(namespace, secretName);
    if (closed || files === undefined) return;
    try {
      if (await replaceTlsFiles(dir, files)) log.info({ dir }, 'the client certificate was written');
      lastProblem = '';
      first.resolve();
    } catch (error) {
      const problem = messageOf(error);
      if (problem !== lastProblem) log.error({ dir, problem }, 'the client certificate cannot be written');
      lastProblem = problem;
      cancelRetry();
      cancelRetry = clock.timer(retryMs, changed);
    }
  }

  function changed(): void {
    queue = queue.then(keep);
  }

  watch.onChange(changed);
  return {
    /** Resolves when the directory has files that can be loaded; rejects with the signal's reason. */
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
function filesIn(object: KubeObject): TlsFileContents | undefined {
  const { data = {} } = object as Secret;
  const read = (name: string): Buffer => Buffer.from(data[name] ?? '', 'base64');
  const files = { 'tls.crt': read('tls.crt'), 'tls.key': read('tls.key'), 'ca.crt': read('ca.crt') };
  return tlsFileNames.every((name) => files[name].length > 0) ? files : undefined;
}
