/**
 * Exec format errors: manifest and binaries of an image can differ. `suspects.ts` finds containers that may
 * have failed for that; their log decides. If the manifest names the node's architecture (`causes.ts`),
 * `broken-notes.ts` notes the image for the namespace: decisions avoid the architecture until the note
 * expires. Missing x86-64 levels are noted alike: decisions require the level.
 */
import { ownNames } from '../../../names/keys.ts';
import { BoundedMap } from '../../../async/bounded-map.ts';
import { createRateLimiter, RateLimiters } from '../../../async/rate-limiter.ts';
import { isCode, KubeError } from '../../../kube/api/errors.ts';
import { paths } from '../../../kube/api/paths.ts';
import { countedArchitectures, isArchitecture } from '../../../names/architecture.ts';
import type { Amd64Level } from '../../../nodes/node-class.ts';
import { counter, gauge } from '../../../telemetry/metrics.ts';
import type { CachedNode, RunningPod } from '../../state/cached.ts';
import type { Feature, LeaderContext, ReconcileResult } from '../../lead/feature.ts';
import { Reporter } from '../../report/reporter.ts';
import { skippedPods } from '../../pods/skipped-pods.ts';
import { factsOf, reportsPlatforms, useOf } from '../../pods/pulled-images.ts';
import { isDaemon } from '../../pods/workload.ts';
import { formOf } from '../../../placement/rules/images/fit.ts';
import { noteBroken, pruneBroken } from './broken-notes.ts';
import { blameOf, describeBlame, describeLevel, levelOfNode, neededLevel } from './causes.ts';
import { failureIn, suspectsOf, type ProgramFailure, type Suspect } from '../../pods/suspects.ts';

const execFormatErrors = counter(
  'archwright_exec_format_errors_total',
  'Containers that ended with an exec format error, by the node’s architecture.',
  { architecture: countedArchitectures },
);

/** Every amd64 CPU has level 1. */
const missedLevels = ['v2', 'v3', 'v4'] as const;

const cpuLevelErrors = counter(
  'archwright_cpu_level_errors_total',
  'Containers that ended because the CPU lacks the level.',
  { level: missedLevels },
);

const imagesWithLevel = gauge('archwright_images_with_cpu_level', 'Records of images that need a CPU level.');

const brokenImages = gauge('archwright_broken_images', 'Records of broken images.');

/**
 * A kubelet reads logs from disk, and the API server stores notes: crashing pods must not cause many of
 * these. Termination messages need no log, but anyone who runs a pod writes them.
 */
const checks = { perSecond: 1, burst: 10 };
/** Some pods of one broken image are enough. Six a minute leave room for ten busy namespaces. */
const checksOfNamespace = { perSecond: 0.1, burst: 5 };
const maxNamespaces = 5000;
/** An exec format error is the only line of its log; a missing CPU level is in one of the last. */
const maxLogBytes = 8192;
const logLines = 10;
const logTimeoutMs = 5000;
/** A container is checked again after this time. */
const checkAgainMs = 10 * 60_000;
/** Later, the tag may name another image than the one that failed. */
const tagMs = 10 * 60_000;
const maxRemembered = 5000;
const pruneIntervalMs = 60 * 60_000;
/** Pods and nodes come by different watches, in any order. The pods of a deleted node are deleted soon. */
const nodeWaitMs = 500;

/** Not a pod: its key has no slash. */
const pruneKey = 'prune';

export const execFormat: Feature = {
  name: 'exec-format',
  metrics: [execFormatErrors, brokenImages, cpuLevelErrors, imagesWithLevel],
  workers: 2,
  leftovers: {
    objects: (configuration) => [{ kind: 'ConfigMap', name: ownNames(configuration).brokenImages }],
  },
  // Without the nodes, the architecture of a pod is unknown.
  start: (leader, enqueue) => {
    const { runningPods } = leader.caches;
    const monitor = createMonitor(leader);
    runningPods.onEach(({ namespace, name, object }) => {
      const key = `${namespace}/${name}`;
      if (object && suspectsOf(object).length > 0) enqueue(key);
    });
    return {
      keys: () => {
        const suspects = [...runningPods.values()].filter((pod) => suspectsOf(pod).length > 0);
        return [pruneKey, ...suspects.map((pod) => `${pod.namespace}/${pod.name}`)];
      },
      reconcile: (key) => (key === pruneKey ? monitor.prune() : monitor.check(key)),
    };
  },
};

type KnownNode = CachedNode & { readonly architecture: string };

function isKnown(node: CachedNode | undefined): node is KnownNode {
  return node?.architecture !== undefined && isArchitecture(node.architecture);
}

function createMonitor(leader: LeaderContext) {
  const { caches, client, clock, configuration, log, metrics, serverNow, signal } = leader;
  const configMap = ownNames(configuration()).brokenImages;
  const reporter = new Reporter(leader);
  const limiter = createRateLimiter({ ...checks, clock });
  const limiters = new RateLimiters({ ...checksOfNamespace, clock }, maxNamespaces);
  const checkedAt = new BoundedMap<string, number>(maxRemembered);
  let hasWarned = false;

  async function prune(): Promise<ReconcileResult> {
    const notes = await pruneBroken(leader, configMap, serverNow());
    const levels = notes.filter(({ level }) => level !== undefined).length;
    metrics.gauge(brokenImages).set(notes.length - levels);
    metrics.gauge(imagesWithLevel).set(levels);
    return { requeueAfterMs: pruneIntervalMs };
  }

  async function check(key: string): Promise<ReconcileResult> {
    const [namespace = '', name = ''] = key.split('/');
    const isEnabled = configuration().execFormatErrorMonitor;
    const pod = isEnabled ? caches.runningPods.get(namespace, name) : undefined;
    const node = pod && caches.nodes.get('', pod.node);
    if (pod && !node) return { requeueAfterMs: nodeWaitMs };
    return pod && isKnown(node) ? await checkPod(pod, node) : undefined;
  }

  /** A pod over the limit of the namespace or the cluster is checked later; no worker waits for it. */
  async function checkPod(pod: RunningPod, node: KnownNode): Promise<ReconcileResult> {
    // A note has no effect on a skipped pod. For a pod of a DaemonSet, the template decides.
    if (!isDaemon(pod) && skippedPods(leader)(pod)) return undefined;
    for (const suspect of suspectsOf(pod)) {
      const key = `${pod.uid}/${suspect.container}`;
      if (clock.monotonic() - (checkedAt.get(key) ?? -Infinity) < checkAgainMs) continue;
      const waitMs = limiters.get(pod.namespace).takeOrDelayMs() || limiter.takeOrDelayMs();
      if (waitMs > 0) return { requeueAfterMs: Math.ceil(waitMs) };
      const text = suspect.failure ? undefined : await logOf(pod, suspect);
      // Not read, or of the container's next start: the next crash shows it.
      if (!suspect.failure && !text) continue;
      const failure = suspect.failure ?? failureIn(text);
      const isNoted = failure !== undefined && (await report(pod, suspect, node, failure));
      // Also if the note is known: its writer may have missed the answer.
      if (isNoted) await prune();
      checkedAt.set(key, clock.monotonic());
    }
    return undefined;
  }

  /** @returns `undefined`: the log cannot be read, because the pod is gone or its node cannot be reached */
  async function logOf(pod: RunningPod, { container, previous }: Suspect): Promise<string | undefined> {
    const path = `${paths.pods(pod.namespace, pod.name)}/log`;
    const query = { container, limitBytes: maxLogBytes, tailLines: logLines, ...(previous && { previous }) };
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(logTimeoutMs)]);
      return await client.text(path, { signal: limit, query, maxBytes: maxLogBytes });
    } catch (error) {
      signal.throwIfAborted();
      if (isCode(error, 'forbidden') && !hasWarned) {
        hasWarned = true;
        // The custom resource can enable the monitor although the chart gave no right to read logs.
        log.warn(
          { error: error.message },
          'no permission to read pod logs; most exec format errors will go undetected',
        );
      }
      const code = error instanceof KubeError ? error.code : 'timeout';
      log.debug({ path, container, code }, 'the log of a crashing container could not be read');
      return undefined;
    }
  }

  /** Reports the cause on pod and workload, and notes it if placement can avoid it. @returns whether it is noted */
  async function report(
    pod: RunningPod,
    suspect: Suspect,
    node: KnownNode,
    failure: ProgramFailure,
  ): Promise<boolean> {
    const { architecture } = node;
    const record = (reason: string, message: string, ...subject: readonly unknown[]): void =>
      reporter.record(pod, { type: 'Warning', reason, message }, [suspect.digest, ...subject].join(' '));
    if (failure.kind === 'cpu-level') {
      const ofNode = levelOfNode(leader, node);
      const level = neededLevel(failure.missed, ofNode);
      if (architecture !== 'amd64' || level === undefined) return false;
      await note(pod, suspect, node, level);
      metrics.counter(cpuLevelErrors, { level: `v${level}` }).inc();
      record('CpuLevelTooLow', describeLevel(pod, suspect, level, ofNode), level);
      return true;
    }
    const blame = await blameOf(leader, pod, suspect, architecture);
    if (blame.kind === 'image') await note(pod, suspect, node);
    metrics.counter(execFormatErrors, { architecture }).inc();
    record('ExecFormatError', describeBlame(pod, suspect, architecture, blame), architecture, blame.kind);
    return blame.kind === 'image';
  }

  async function note(pod: RunningPod, suspect: Suspect, node: KnownNode, level?: Amd64Level): Promise<void> {
    const { image, digest } = suspect;
    const { namespace } = pod;
    const seen = { architecture: node.architecture, ...(level && { level }), image, namespace };
    const until = serverNow() + configuration().brokenImageTime;
    const isNew = await noteBroken(leader, configMap, { ...seen, digest, until });
    const ofTag = await digestOfTag(pod, suspect, node);
    if (ofTag !== undefined) await noteBroken(leader, configMap, { ...seen, digest: ofTag, until });
    if (isNew)
      log.warn(
        { ...seen, digest },
        level === undefined ? 'an image is broken on an architecture' : 'an image needs a level of x86-64',
      );
  }

  /** The index by which new pods find the note, where the node reports the manifest of its platform. */
  async function digestOfTag(
    pod: RunningPod,
    { image }: Suspect,
    node: KnownNode,
  ): Promise<string | undefined> {
    const isNew = leader.serverNow() - pod.scheduledAt < tagMs;
    if (!reportsPlatforms(node) || !isNew) return undefined;
    const facts = (await factsOf(leader, pod, [useOf(image)])).get(image);
    if (facts === undefined || facts.error || formOf(facts.mediaType) !== 'index') return undefined;
    const named = [...facts.platforms.map((platform) => platform.architecture), ...(facts.brokenOn ?? [])];
    return named.includes(node.architecture) ? facts.digest : undefined;
  }

  return { prune, check };
}
