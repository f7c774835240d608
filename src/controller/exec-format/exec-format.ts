/**
 * Exec format errors: what a manifest says of an image and what its binaries are can differ. `suspects.ts` finds containers
 * that may have ended for that reason, their log decides, `notes.ts` writes it down for the namespace in which it was seen.
 * Decisions from then on avoid the architecture until the note expires; the pod's owner reads why in an event.
 */
import { isArchitecture } from '../../names/architecture.ts';
import { KubeError } from '../../kube/api/errors.ts';
import { createRateLimiter } from '../../async/rate-limiter.ts';
import type { ObjectReference } from '../../kube/events/event.ts';
import type { RunningPod } from '../caches/caches.ts';
import type { Feature, Leading } from '../leadership/leading.ts';
import { createReconciler } from '../reconcile/reconciler.ts';
import { createSkippedPods } from '../scope/skipped-pods.ts';
import { brokenImages, execFormatErrors } from '../metrics.ts';
import { isDaemon } from '../scope/daemon-set.ts';
import { createNodeAwaited } from './node-awaited.ts';
import { createNotes, type Notes } from './notes.ts';
import { saysExecFormatError, suspectsOf, type Suspect } from './suspects.ts';
import { paths } from '../../kube/api/paths.ts';

/** A kubelet reads logs from its disk; a cluster full of crashing pods must not make it a hot path. */
const logReads = { perSecond: 1, burst: 10 };
/** Of a log: the one line that there can be. */
const maxLogBytes = 8192;
const logTimeoutMs = 5000;
/** Containers whose log said something else are not asked again for a while. */
const forgetAfterMs = 10 * 60_000;
const maxRemembered = 5000;
const pruneEveryMs = 60 * 60_000;
/** No pod has this key. */
const pruneKey = 'prune';

/** Works while this replica leads. */
export const watchExecFormatErrors: Feature = async (leading) => {
  const { client, clock, log, signal, caches, metrics } = leading;
  const configuration = leading.configuration();
  const { namespace, brokenImagesName } = configuration;
  if (namespace === undefined) {
    log.warn('exec format errors are not watched: the namespace of archwright is not known');
    return;
  }
  const notes = createNotes({ client, namespace, name: brokenImagesName });
  const limiter = createRateLimiter({ ...logReads, clock });
  const level = metrics.gauge(brokenImages);
  /** When a container's log was read, by pod and container. */
  const looked = new Map<string, number>();
  const awaited = createNodeAwaited();
  const leftAlone = createSkippedPods(leading);
  let isRefused = false;

  function isFresh(key: string): boolean {
    const at = looked.get(key);
    return at !== undefined && clock.monotonic() - at < forgetAfterMs;
  }

  function remember(key: string): void {
    looked.delete(key);
    looked.set(key, clock.monotonic());
    const oldest = looked.size > maxRemembered ? looked.keys().next().value : undefined;
    if (oldest !== undefined) looked.delete(oldest);
  }

  /** The custom resource can switch on what the chart gave no right for; somebody should hear of that, once. */
  function refused(error: string): void {
    if (!isRefused)
      log.warn({ error }, 'logs of pods may not be read; exec format errors are seldom found so');
    isRefused = true;
  }

  async function count(): Promise<void> {
    level.set(await notes.prune(leading.serverNow(), signal));
  }

  async function lookAt(pod: RunningPod): Promise<void> {
    const node = caches.nodes.get('', pod.node);
    if (node === undefined) {
      const key = `${pod.namespace}/${pod.name}`;
      const againMs = awaited.next(key);
      if (againMs !== undefined) reconciler.add(key, againMs);
      return;
    }
    const { architecture } = node;
    if (architecture === undefined || !isArchitecture(architecture)) return;
    // A note would be of use to nobody. The template of a DaemonSet is placed for itself.
    if (!isDaemon(pod) && (await leftAlone())(pod)) return;
    for (const suspect of suspectsOf(pod)) {
      const key = `${pod.uid}/${suspect.container}`;
      if (isFresh(key)) continue;
      if (!suspect.certain) await limiter.take(signal);
      const isOne = suspect.certain || saysExecFormatError(await logOf(leading, pod, suspect, refused));
      const isNews = isOne && (await note(leading, notes, pod, suspect, architecture));
      remember(key);
      if (isNews) await count();
    }
  }

  const reconciler = createReconciler({
    leading,
    workers: 2,
    reconcile: async (key) => {
      if (key === pruneKey) {
        await count();
        return { requeueAfterMs: pruneEveryMs };
      }
      const [inNamespace = '', name = ''] = key.split('/');
      const pod = caches.runningPods.get(inNamespace, name);
      const isWatched = pod !== undefined && leading.configuration().execFormatErrorMonitor;
      if (isWatched) await lookAt(pod);
      if (!isWatched || caches.nodes.get('', pod.node)) awaited.forget(key);
      return undefined;
    },
  });
  // Without the nodes nothing is known of a pod's architecture, and nobody would look again until the pod changes.
  await caches.ready(signal).catch(() => undefined);
  caches.runningPods.onEach(({ namespace: inNamespace, name, object }) => {
    const key = `${inNamespace}/${name}`;
    awaited.forget(key);
    if (object && suspectsOf(object).length > 0) reconciler.add(key);
  });
  for (const pod of caches.runningPods.values()) {
    if (suspectsOf(pod).length > 0) reconciler.add(`${pod.namespace}/${pod.name}`);
  }
  await reconciler.run([pruneKey]);
  // The next leader counts; two replicas must not both show the same notes.
  level.set(0);
};

/** A log that cannot be read is no evidence: the pod is gone, or its node cannot be reached. */
async function logOf(
  { client, signal, log }: Leading,
  pod: RunningPod,
  { container, previous }: Suspect,
  refused: (error: string) => void,
): Promise<string | undefined> {
  const path = `${paths.pods(pod.namespace, pod.name)}/log`;
  const query = { container, limitBytes: maxLogBytes, ...(previous && { previous }) };
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(logTimeoutMs)]);
    return await client.text(path, { signal: limit, query, maxBytes: maxLogBytes });
  } catch (error) {
    signal.throwIfAborted();
    const code = error instanceof KubeError ? error.code : 'timeout';
    if (error instanceof KubeError && code === 'forbidden') refused(error.message);
    log.debug({ path, container, code }, 'the log of a crashing container could not be read');
    return undefined;
  }
}

/** @returns whether it is news */
async function note(
  { signal, events, metrics, log, configuration, serverNow }: Leading,
  notes: Notes,
  pod: RunningPod,
  { container, image, digest }: Suspect,
  architecture: string,
): Promise<boolean> {
  const until = serverNow() + configuration().brokenImageTime;
  const noted = await notes.add({ digest, architecture, image, namespace: pod.namespace, until }, signal);
  const { brokenImagesName } = configuration();
  metrics.counter(execFormatErrors, { architecture }).inc();
  const text = {
    type: 'Warning',
    reason: 'ExecFormatError',
    message:
      `Container ${container}: a binary of ${image.slice(0, 256)} is not for ${architecture}, the architecture of node ${pod.node}, ` +
      `whatever its manifest says. ${
        noted === 'full'
          ? `That could not be noted: ConfigMap ${brokenImagesName} has all the notes that it may have.`
          : `New pods of this namespace avoid ${architecture} where the image has another architecture.`
      }`,
  } as const;
  for (const about of subjectsOf(pod)) events.record(about, text);
  if (noted !== 'known') {
    log.warn(
      { image, digest, architecture, namespace: pod.namespace, noted: noted === 'news' },
      'an image is broken on an architecture',
    );
  }
  return noted === 'news';
}

function subjectsOf({ namespace, name, uid, owner }: RunningPod): readonly ObjectReference[] {
  const pod = { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
  if (owner === undefined) return [pod];
  const { apiVersion, kind, name: ownerName, uid: ownerUid } = owner;
  return [pod, { apiVersion, kind, namespace, name: ownerName, uid: ownerUid }];
}
