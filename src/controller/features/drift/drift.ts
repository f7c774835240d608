/**
 * Drift: a tag that pods run was pushed again and lost or gained an architecture. The next rollout fails, or
 * could use other nodes. Each tag is checked once per `driftInterval` (`check.ts`), at a time that follows
 * from its name (`tags.ts`). Workloads get events about losses (`reports.ts`); gauges and notes have both.
 * Agent, controller and webhooks (by the notes) forget the facts of the earlier digest.
 */
import { ownNames } from '../../../names/keys.ts';
import { concurrently } from '../../../async/concurrently.ts';
import { inTurn } from '../../../async/fair-queue.ts';
import {
  formatDrifted,
  keyOfDrifted,
  maxDriftedBytes,
  maxDriftedTags,
  parseDrifted,
  type DriftedTag,
} from '../../../images/sources/drifted-tags.ts';
import { createReferenceCache } from '../../../images/references/reference.ts';
import type { Feature, LeaderContext, ReconcileResult } from '../../lead/feature.ts';
import { checkTag } from './check.ts';
import { changeNotes, getNotes } from '../../write/own-data.ts';
import { createReports, driftMetrics } from './reports.ts';
import {
  fairShare,
  maxTags,
  namespacesOf,
  nextCheckAt,
  runningDigests,
  runningTags,
  type RunningTag,
} from './tags.ts';

const concurrentChecks = 8;
/** The rest waits for the next round, in turn with the tags that are due by then. */
const checksMs = 60_000;
/** A round looks at every running pod. Shorter intervals have at least so many rounds. */
const round = { mostMs: 60_000, leastMs: 1000, perInterval: 20 };

export const drift: Feature = {
  name: 'drift',
  metrics: driftMetrics,
  inRounds: true,
  leftovers: { objects: (configuration) => [{ kind: 'ConfigMap', name: ownNames(configuration).drift }] },
  // Not before the caches are complete: without pods, all notes would be removed.
  start: (leader) => {
    const reconcile = createDriftMonitor(leader);
    return { keys: () => ['all'], reconcile };
  },
};

/** @returns checks the tags that are due; throws KubeError */
export function createDriftMonitor(leader: LeaderContext) {
  const { cache, caches, clock, configuration, log, serverNow } = leader;
  const configMap = ownNames(configuration()).drift;
  const reports = createReports(leader);
  const parse = createReferenceCache();
  /** Keys, here and below: tags of running pods. */
  const drifted = new Map<string, DriftedTag>();
  let hasNotes = false;
  /** Tags that are due. */
  const waiting = new Set<string>();
  /** The credentials of other pods are tried after each refusal. */
  const refusals = new Map<string, number>();
  /** Server time of the last round, milliseconds. The last leader did the checks before. */
  let lookedAt = serverNow();

  async function reconcile(): Promise<ReconcileResult> {
    const { driftInterval: intervalMs } = configuration();
    if (!hasNotes) await takeNotes();
    const tags =
      intervalMs === 0 ? new Map<string, RunningTag>() : runningTags(caches.runningPods.values(), parse);
    forget(tags);
    const chosen = fairShare([...tags.values()], maxTags, namespacesOf);
    const now = serverNow();
    for (const { image } of chosen) if (nextCheckAt(image, intervalMs, lookedAt) <= now) waiting.add(image);
    lookedAt = now;
    const due = chosen.filter(({ image }) => waiting.has(image));
    const until = clock.monotonic() + checksMs;
    await concurrently(inTurn(due, namespacesOf), concurrentChecks, async (tag) => {
      if (clock.monotonic() < until) await check(tag);
    });
    reports.show(drifted.values(), { checked: chosen.length, leftOut: tags.size - chosen.length });
    const wanted = notesOf([...drifted.values()], (image) => namespacesOf(tags.get(image) ?? { uses: [] }));
    await changeNotes(leader, configMap, () => [wanted, undefined]);
    const { mostMs, leastMs, perInterval } = round;
    const pauseMs = intervalMs === 0 ? mostMs : intervalMs / perInterval;
    return { requeueAfterMs: Math.min(mostMs, Math.max(leastMs, pauseMs)) };
  }

  /** Those of the last leader. This replica did not follow them while that one led. */
  async function takeNotes(): Promise<void> {
    const known = parseDrifted((await getNotes(leader, configMap))?.data);
    cache.forget(known);
    for (const tag of known) drifted.set(tag.image, tag);
    hasNotes = true;
  }

  async function check(tag: RunningTag): Promise<void> {
    waiting.delete(tag.image);
    const known = drifted.get(tag.image);
    const refused = refusals.get(tag.image) ?? 0;
    const { result, known: now } = await checkTag({ leader, tag, use: useFor(tag, refused), known });
    reports.checked(result);
    if (/^(?:unauthorized|forbidden|not-found)$/u.test(result)) refusals.set(tag.image, refused + 1);
    if (now === undefined) return;
    const { digest, change, pulled } = now;
    if (change === undefined) return void drifted.delete(tag.image);
    const { lost, gained } = change;
    const since = known?.digest === digest ? known.since : serverNow();
    const found = { image: tag.image, digest, lost, gained, since };
    drifted.set(tag.image, found);
    if (lost.length > 0) await reports.lost(tag, found, pulled);
    else if (known?.digest !== digest)
      log.info({ image: tag.image, gained }, 'a tag of running pods gained platforms');
  }

  /** Forgets tags that no pod uses, and drift that ended because all pods run what the tag names. */
  function forget(tags: ReadonlyMap<string, RunningTag>): void {
    for (const known of [waiting, refusals])
      for (const image of known.keys()) if (!tags.has(image)) known.delete(image);
    for (const [image, { digest }] of drifted) {
      const tag = tags.get(image);
      const running = tag && [...runningDigests(tag, caches.nodes).keys()];
      const hasEnded =
        running === undefined || (running.length > 0 && running.every((each) => each === digest));
      if (hasEnded) drifted.delete(image);
    }
  }

  return reconcile;
}

/**
 * As many notes as there is room for: lost architectures first, then in turn from each namespace.
 * @param namespacesOfTag in which a tag runs, by its image
 */
export function notesOf(
  tags: readonly DriftedTag[],
  namespacesOfTag: (image: string) => readonly string[],
): Readonly<Record<string, string>> {
  const { losing = [], gaining = [] } = Object.groupBy(tags, ({ lost }) =>
    lost.length > 0 ? 'losing' : 'gaining',
  );
  const share = (some: readonly DriftedTag[], most: number) =>
    fairShare(some, most, ({ image }) => namespacesOfTag(image));
  const chosen = share(losing, maxDriftedTags);
  const notes: Record<string, string> = {};
  let bytes = 0;
  for (const tag of [...chosen, ...share(gaining, maxDriftedTags - chosen.length)]) {
    const [key, value] = [keyOfDrifted(tag.image), formatDrifted(tag)];
    bytes += key.length + Buffer.byteLength(value);
    if (bytes > maxDriftedBytes) break;
    notes[key] = value;
  }
  return notes;
}

/** Pods of one tag may have different credentials. */
function useFor({ uses }: RunningTag, refusals: number): RunningTag['uses'][number] {
  const byCredentials = new Map(
    uses.map((use) => {
      const { namespace, pullSecrets, serviceAccountName } = use.pod;
      return [JSON.stringify([namespace, pullSecrets, serviceAccountName]), use];
    }),
  );
  const keys = [...byCredentials.keys()].sort();
  const use = byCredentials.get(keys[refusals % keys.length] ?? '');
  if (use === undefined) throw new TypeError('a tag of running pods is used by none');
  return use;
}
