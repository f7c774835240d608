/**
 * A controller's own copy of its client certificate. A mounted Secret reaches a pod up to two minutes after it is written, and the first leader
 * of a new cluster writes it itself. So each replica, leading or not, follows the Secret and writes its content to a directory. As with the
 * kubelet, the file names are links into a directory that is replaced as a whole: a reader finds the old files or the new ones.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock, type Clock } from '../../async/clock.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { KubeObject, Secret } from '../../kube/api/objects.ts';
import { startReflector } from '../../kube/watch/reflector.ts';
import { unlessAborted } from '../../async/wait.ts';
import { loadTlsMaterial } from '../../serving/tls-files.ts';
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

const names = ['tls.crt', 'tls.key', 'ca.crt'] as const;
type Files = Readonly<Record<(typeof names)[number], Buffer>>;

/** The kubelet's name for it (pkg/volume/util/atomic_writer.go). */
const link = '..data';

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

  const watch = startReflector<Files>({
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
      if (await replaceFiles(dir, files)) log.info({ dir }, 'the client certificate was written');
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
function filesIn(object: KubeObject): Files | undefined {
  const { data = {} } = object as Secret;
  const read = (name: string): Buffer => Buffer.from(data[name] ?? '', 'base64');
  const files: Files = { 'tls.crt': read('tls.crt'), 'tls.key': read('tls.key'), 'ca.crt': read('ca.crt') };
  return names.every((name) => files[name].length > 0) ? files : undefined;
}

/** Replaces all files of a directory at once. @returns whether they changed */
async function replaceFiles(dir: string, files: Files): Promise<boolean> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  if (await hasFiles(dir, files)) return false;
  const version = `..${randomBytes(8).toString('hex')}`;
  try {
    await mkdir(join(dir, version), { mode: 0o700 });
    for (const name of names) await writeFile(join(dir, version, name), files[name], { mode: 0o600 });
    // Half of a change, or a mistake: the files in use stay.
    await loadTlsMaterial(join(dir, version), true);
    await swapLink(version, join(dir, link));
    for (const name of names) await swapLink(join(link, name), join(dir, name));
  } finally {
    await removeOthers(dir);
  }
  return true;
}

async function hasFiles(dir: string, files: Files): Promise<boolean> {
  const found = await Promise.all(names.map((name) => readFile(join(dir, name)).catch(() => undefined)));
  return names.every((name, index) => found[index]?.equals(files[name]));
}

/** Creates or replaces a link in one step. */
async function swapLink(target: string, path: string): Promise<void> {
  if ((await readlink(path).catch(() => undefined)) === target) return;
  const temporary = `${path}.new`;
  await rm(temporary, { force: true, recursive: true });
  await symlink(target, temporary);
  await rename(temporary, path);
}

/** Removes unused versions: the previous one, and leftovers of a crash. */
async function removeOthers(dir: string): Promise<void> {
  const current = await readlink(join(dir, link)).catch(() => undefined);
  for (const name of await readdir(dir)) {
    if (/^\.\.[0-9a-f]{16}$/.test(name) && name !== current) {
      await rm(join(dir, name), { recursive: true, force: true });
    }
  }
}
