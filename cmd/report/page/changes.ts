/**
 * The changes to make first. A change removes one blocker from all pods that have it: a new build of an
 * image, or the pin of a workload. Pods may need several changes. So steps are chosen as sets: the one that
 * brings the most for each of its changes, after the steps before it.
 */
import { maxImageBytes, printable } from '../../../src/names/printable.ts';
import type { Cause } from '../verdict.ts';
import { workloadKey, type JudgedPod } from '../rows.ts';
import { shareOf, type Share } from './shares.ts';

export interface Change {
  readonly cause: Cause;
  /** The image, or `NAMESPACE/KIND/NAME` of the workload. */
  readonly subject: string;
  /** As written in the pods. */
  readonly image: string | undefined;
  /** Pods that can run after this step and could not before. */
  readonly freed: readonly JudgedPod[];
  readonly gain: Share;
  /** Pods that have this blocker. */
  readonly blocked: number;
}

/** People read ten entries; the table has the rest. */
const maxChanges = 10;

/** Pods that need more are rare; the sets within theirs are not looked at. */
const maxWithin = 6;

/** Pods that need the same changes. */
interface Open {
  readonly pods: readonly JudgedPod[];
  /** Keys of the changes that these pods still need. */
  readonly needs: Set<string>;
  readonly weight: number;
}

export function firstChanges(pods: readonly JudgedPod[]): readonly Change[] {
  const known = new Map<string, Omit<Change, 'freed' | 'gain' | 'blocked'>>();
  const blocked = pods.filter(({ blockers }) => blockers.length > 0);
  const groups = Map.groupBy(blocked, (pod) => JSON.stringify(neededBy(pod, known)));
  const total = shareOf(blocked);
  let open: readonly Open[] = [...groups].map(([key, group]) => {
    const { cpu, memory, pods } = shareOf(group);
    const weight = pods / total.pods + cpu / (total.cpu || 1) + memory / (total.memory || 1);
    return { pods: group, needs: new Set(JSON.parse(key) as string[]), weight };
  });
  const changes: Change[] = [];
  while (changes.length < maxChanges) {
    const keys = best(open, maxChanges - changes.length);
    if (keys === undefined) break;
    for (const key of keys) {
      const change = known.get(key);
      if (change === undefined) continue;
      const having = open.filter(({ needs }) => needs.delete(key));
      const freed = having.filter(({ needs }) => needs.size === 0).flatMap((each) => each.pods);
      const blockedPods = having.reduce((sum, each) => sum + each.pods.length, 0);
      changes.push({ ...change, freed, gain: shareOf(freed), blocked: blockedPods });
    }
    open = open.filter(({ needs }) => needs.size > 0);
  }
  return changes;
}

/** The set of at most so many changes that brings the most for each of them. */
function best(open: readonly Open[], most: number): readonly string[] | undefined {
  const weights = new Map<string, number>();
  for (const { needs, weight } of open) {
    const key = keyOf([...needs]);
    weights.set(key, (weights.get(key) ?? 0) + weight);
  }
  const candidates = open.map(({ needs }) => [...needs]).filter(({ length }) => length <= most);
  let found: readonly string[] | undefined;
  let highest = 0;
  for (const keys of candidates) {
    const within = keys.length <= maxWithin ? subsetsOf(keys) : [keys];
    const gain = within.reduce((sum, each) => sum + (weights.get(keyOf(each)) ?? 0), 0);
    if (gain / keys.length <= highest) continue;
    highest = gain / keys.length;
    found = keys;
  }
  return found;
}

/** All but the empty one. */
function subsetsOf(keys: readonly string[]): readonly (readonly string[])[] {
  const numbers = Array.from({ length: 2 ** keys.length - 1 }, (_, index) => index + 1);
  return numbers.map((bits) => keys.filter((_, at) => (bits & (1 << at)) !== 0));
}

/** Keys are in their order. */
function keyOf(keys: readonly string[]): string {
  return keys.join('\n');
}

function neededBy(
  { pod, workload, blockers }: JudgedPod,
  known: Map<string, Omit<Change, 'freed' | 'gain' | 'blocked'>>,
): readonly string[] {
  const keys = blockers.map(({ cause, image }) => {
    const subject = image ?? workloadKey(workload, pod);
    const key = JSON.stringify([image === undefined ? 'pin' : 'image', subject]);
    if (!known.has(key))
      known.set(key, { cause, image, subject: printable(subject, image ? maxImageBytes : 400) });
    return key;
  });
  return [...new Set(keys)].sort();
}
