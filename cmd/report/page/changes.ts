/**
 * The changes to make first. A change removes one blocker from all pods that have it: a new build of an image, or the pin of a
 * workload. Each step takes the change that brings the most after the steps before it.
 */
import { maxImageBytes, printable } from '../../../src/names/printable.ts';
import type { Cause } from '../blockers.ts';
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

/** A list of ten is read; the table has the rest. */
const maxChanges = 10;

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
  const open: readonly Open[] = [...groups].map(([key, group]) => {
    const { cpu, memory, pods } = shareOf(group);
    const weight = pods / total.pods + cpu / (total.cpu || 1) + memory / (total.memory || 1);
    return { pods: group, needs: new Set(JSON.parse(key) as string[]), weight };
  });
  const changes: Change[] = [];
  while (changes.length < maxChanges) {
    const key = best(open);
    const change = key === undefined ? undefined : known.get(key);
    if (key === undefined || change === undefined) break;
    const having = open.filter(({ needs }) => needs.delete(key));
    const freed = having.filter(({ needs }) => needs.size === 0).flatMap((each) => each.pods);
    const blockedPods = having.reduce((sum, each) => sum + each.pods.length, 0);
    changes.push({ ...change, freed, gain: shareOf(freed), blocked: blockedPods });
  }
  return changes;
}

/** A pod that needs several changes counts for each of them by its part, so that steps towards it come early too. */
function best(open: readonly Open[]): string | undefined {
  const scores = new Map<string, number>();
  for (const { needs, weight } of open)
    for (const key of needs) scores.set(key, (scores.get(key) ?? 0) + weight / needs.size);
  return [...scores].reduce<readonly [string | undefined, number]>(
    (a, b) => (b[1] > a[1] ? b : a),
    [undefined, 0],
  )[0];
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
