/** Adds up the verdicts of pods: by workload, by image and in total. */
import { byName } from '../../src/names/values.ts';
import { decidedOutcome } from '../../src/placement/record/read.ts';
import {
  causes,
  type Blocker,
  type State,
  verdicts,
  type Judged,
  type JudgedImage,
  type Verdict,
} from './verdict.ts';
import { noRequests, sum, type Requests, type ReportedPod } from './pods.ts';
import type { ReportedWorkload } from './workloads.ts';

export interface JudgedPod {
  readonly pod: ReportedPod;
  readonly workload: ReportedWorkload;
  readonly judged: Judged;
  readonly images: readonly JudgedImage[];
  /** Empty if it could run on the architecture. */
  readonly blockers: readonly Blocker[];
  /** Architecture of its node, if the pod has a node and it is known. */
  readonly on: string | undefined;
}

export interface WorkloadRow extends Judged {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly pods: number;
  /** Pods by the architecture of their nodes, sorted. */
  readonly on: Readonly<Record<string, number>>;
  /** Pods by the outcome in their records, sorted; pods without one are not in it. */
  readonly decided: Readonly<Record<string, number>>;
  readonly requests: Requests;
  /** What blocks its pods; `ready` if nothing does. */
  readonly causes: readonly State[];
  /** Per month; absent without prices. */
  readonly saved?: readonly [low: number, high: number];
}

export interface ImageRow extends JudgedImage {
  readonly namespaces: number;
  readonly workloads: number;
  readonly pods: number;
  /** Why it cannot run on the architecture, or `ready`. */
  readonly causes: readonly State[];
  /** Requests of the containers that run it. */
  readonly requests: Requests;
  /** The same image with a newer tag that has the architecture, if one was looked for and found. */
  readonly newerTag?: string;
}

export interface Total {
  readonly workloads: number;
  readonly pods: number;
  readonly there: number;
  readonly requests: Requests;
}

/** Rows by workload, several if its pods differ. Those that could move come first, by their CPU requests. */
export function workloadRows(
  pods: readonly JudgedPod[],
  savedBy?: (pods: readonly JudgedPod[]) => WorkloadRow['saved'],
): readonly WorkloadRow[] {
  const groups = Map.groupBy(pods, ({ workload, pod, judged, blockers }) =>
    JSON.stringify([workloadKey(workload, pod), judged.verdict, judged.why, blockers]),
  );
  return [...groups.values()]
    .flatMap((all) => {
      const [first] = all;
      if (first === undefined) return [];
      const { workload, pod, judged } = first;
      const { kind, name } = workload;
      const on = countsOf(all.flatMap((each) => each.on ?? []));
      const decided = countsOf(all.flatMap((each) => decidedOutcome(each.pod.made.pod) ?? []));
      const requests = requestsOf(all);
      const saved = savedBy?.(all);
      const row = {
        namespace: pod.namespace,
        kind,
        name,
        pods: all.length,
        on,
        decided,
        requests,
        ...judged,
        causes: causesOf([first]),
      };
      return [saved === undefined ? row : { ...row, saved }];
    })
    .sort((a, b) => byWeight(a, b) || byName(`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`));
}

/** Rows by image as written in the pods. If credentials lead to different verdicts, the worse one counts. */
export function imageRows(pods: readonly JudgedPod[]): readonly ImageRow[] {
  const causeByImage = new Map<string | undefined, State>(
    pods.flatMap(({ blockers }) => blockers.map(({ image, cause }) => [image, cause])),
  );
  const uses = pods.flatMap((each) => each.images.map((image) => ({ image, each })));
  return [...Map.groupBy(uses, ({ image }) => image.image).values()]
    .map((all) => {
      const judged = all.map(({ image }) => image).reduce((a, b) => (rank(b) > rank(a) ? b : a));
      return {
        ...judged,
        causes: [causeByImage.get(judged.image) ?? 'ready'],
        namespaces: new Set(all.map(({ each }) => each.pod.namespace)).size,
        workloads: new Set(all.map(({ each }) => workloadKey(each.workload, each.pod))).size,
        pods: all.length,
        requests: all
          .map(({ each }) => each.pod.made.requestsByImage.get(judged.image) ?? noRequests)
          .reduce(sum, noRequests),
      };
    })
    .sort((a, b) => byWeight(a, b) || byName(a.image, b.image));
}

export function totals(
  pods: readonly JudgedPod[],
  architecture: string,
): Readonly<Record<Verdict | 'all', Total>> {
  const total = (some: readonly JudgedPod[]): Total => ({
    workloads: new Set(some.map(({ workload, pod }) => workloadKey(workload, pod))).size,
    pods: some.length,
    there: some.filter(({ on }) => on === architecture).length,
    requests: requestsOf(some),
  });
  const of = (verdict: Verdict): Total => total(pods.filter(({ judged }) => judged.verdict === verdict));
  return { yes: of('yes'), pinned: of('pinned'), no: of('no'), unknown: of('unknown'), all: total(pods) };
}

export function requestsOf(pods: readonly JudgedPod[]): Requests {
  return pods.map(({ pod }) => pod.made.requests).reduce(sum, noRequests);
}

/** Causes of all blockers; `ready` if a pod has none. */
export function causesOf(pods: readonly Pick<JudgedPod, 'blockers'>[]): readonly State[] {
  const found = new Set(pods.flatMap(({ blockers }) => blockers.map(({ cause }) => cause)));
  const isReady = pods.some(({ blockers }) => blockers.length === 0);
  return [...(isReady ? (['ready'] as const) : []), ...causes.filter((cause) => found.has(cause))];
}

export function workloadKey(
  { kind, name }: Pick<ReportedWorkload, 'kind' | 'name'>,
  { namespace }: Pick<ReportedPod, 'namespace'>,
): string {
  return `${namespace}/${kind}/${name}`;
}

export function countsOf(names: readonly string[]): Readonly<Record<string, number>> {
  const groups = Map.groupBy(names.toSorted(byName), (name) => name);
  return Object.fromEntries([...groups].map(([name, all]) => [name, all.length]));
}

/** `undefined` for no counts. */
export function countsText(on: Readonly<Record<string, number>>): string | undefined {
  const places = Object.entries(on);
  if (places.length < 2) return places[0]?.[0];
  return places.map(([name, count]) => `${name} ${count}`).join(', ');
}

function rank({ verdict }: { readonly verdict: Verdict }): number {
  return verdicts.indexOf(verdict);
}

function byWeight(a: WorkloadRow | ImageRow, b: WorkloadRow | ImageRow): number {
  return rank(a) - rank(b) || b.requests.cpu - a.requests.cpu || b.requests.memory - a.requests.memory;
}
