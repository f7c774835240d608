/**
 * The changes to make first. A change removes one blocker from all pods that have it: a new build of an
 * image, or the pin of a workload. Pods may need several changes. So steps are chosen as sets: the one that
 * brings the most for each of its changes, after the steps before it.
 */
import { maxImageBytes, printable } from '../../../src/names/printable.ts';
import type { Cause, JudgedPod } from '../verdict.ts';
import { shareOf, workloadKey, type Share } from '../rows.ts';

interface Described {
  readonly cause: Cause;
  /** The image, or `NAMESPACE/KIND/NAME` of the workload. */
  readonly subject: string;
  /** The text in the pods. */
  readonly image: string | undefined;
}

export interface Change extends Described {
  /** Pods that can run after this step and could not before. */
  readonly freed: readonly JudgedPod[];
  readonly gain: Share;
  /** Pods that have this blocker. */
  readonly blocked: number;
}

/** People read ten entries; the table has the rest. */
const maxChanges = 10;

interface Blocked {
  readonly pod: JudgedPod;
  /** Keys of the changes that it still needs. */
  readonly needs: Set<string>;
}

export function firstChanges(pods: readonly JudgedPod[]): readonly Change[] {
  const known = new Map<string, Described>();
  const blocked = pods.filter(({ blockers }) => blockers.length > 0);
  const total = shareOf(blocked);
  let open: readonly Blocked[] = blocked.map((pod) => ({ pod, needs: neededBy(pod, known) }));
  const changes: Change[] = [];
  while (changes.length < maxChanges) {
    const keys = best(open, total, maxChanges - changes.length);
    if (keys === undefined) break;
    for (const key of keys) {
      const change = known.get(key);
      if (change === undefined) continue;
      const having = open.filter(({ needs }) => needs.delete(key));
      const freed = having.filter(({ needs }) => needs.size === 0).map(({ pod }) => pod);
      changes.push({ ...change, freed, gain: shareOf(freed), blocked: having.length });
    }
    open = open.filter(({ needs }) => needs.size > 0);
  }
  return changes;
}

/** The set of at most so many changes that brings the most for each of them, to the pods that need just these. */
function best(open: readonly Blocked[], total: Share, most: number): readonly string[] | undefined {
  let found: readonly string[] | undefined;
  let highest = 0;
  for (const group of Map.groupBy(open, ({ needs }) => [...needs].join('\n')).values()) {
    const keys = [...(group[0]?.needs ?? [])];
    const { pods, cpu, memory } = shareOf(group.map(({ pod }) => pod));
    const gain = pods / total.pods + cpu / (total.cpu || 1) + memory / (total.memory || 1);
    if (keys.length > most || gain / keys.length <= highest) continue;
    highest = gain / keys.length;
    found = keys;
  }
  return found;
}

/** @returns in the same order for all pods */
function neededBy({ pod, workload, blockers }: JudgedPod, known: Map<string, Described>): Set<string> {
  const keys = blockers.map(({ cause, image }) => {
    const subject = image ?? workloadKey(workload, pod);
    const key = JSON.stringify([image === undefined ? 'pin' : 'image', subject]);
    if (!known.has(key))
      known.set(key, { cause, image, subject: printable(subject, image ? maxImageBytes : 400) });
    return key;
  });
  return new Set(keys.sort());
}
