/** Adds up the verdicts of pods: by workload, by image and in total. */
import { byName } from '../../src/names/values.ts';
import { decidedOutcome } from '../../src/placement/record/read.ts';
import { rounded } from './page/data.ts';
import { noRequests, sum, type ReportedPod, type ReportedWorkload, type Requests } from './pods.ts';
import type { Money } from './prices/savings.ts';
import {
  states,
  verdicts,
  type Judgement,
  type JudgedPod,
  type State,
  type ReportVerdict,
} from './verdict.ts';

/** Pods, and what they request. */
export interface Share extends Requests {
  readonly pods: number;
}

export type WorkloadRow = ReturnType<typeof workloadRows>[number];

/** Rows by workload, several if its pods differ. Those that could move come first, by their CPU requests. */
export function workloadRows(pods: readonly JudgedPod[], money?: Money) {
  const groups = Map.groupBy(pods, ({ workload, pod, verdict, why, blockers }) =>
    JSON.stringify([workloadKey(workload, pod), verdict, why, blockers]),
  );
  return [...groups.values()]
    .flatMap((all) => {
      const [first] = all;
      if (first === undefined) return [];
      const { workload, pod, verdict, why } = first;
      return {
        namespace: pod.namespace,
        apiVersion: workload.apiVersion,
        kind: workload.kind,
        name: workload.name,
        ...shareOf(all),
        /** Pods by the architecture of their nodes, sorted. */
        on: countsOf(all.flatMap((each) => each.on ?? [])),
        /** Pods by the outcome in their records, sorted; pods without one are not in it. */
        decided: countsOf(all.flatMap((each) => decidedOutcome(each.pod.made.pod) ?? [])),
        verdict,
        why,
        causes: causesOf([first]),
        /** Savings per month; absent without prices. */
        saved: money?.savingsOf(all)?.saved,
      };
    })
    .sort((a, b) => byWeight(a, b) || byName(`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`));
}

/**
 * Rows by image as written in the pods, with the requests of the containers that run it. If credentials lead to
 * different verdicts, the worse one counts.
 */
export function imageRows(pods: readonly JudgedPod[]) {
  const uses = pods.flatMap((each) => each.images.map((image) => ({ image, each })));
  return [...Map.groupBy(uses, ({ image }) => image.image).values()]
    .map((all) => {
      const worst = all.map(({ image }) => image).reduce((a, b) => (rank(b) > rank(a) ? b : a));
      const { state, ...judged } = worst;
      const requests = all.map(({ each }) => each.pod.made.requestsByImage.get(judged.image) ?? noRequests);
      return {
        ...judged,
        causes: [state],
        namespaces: new Set(all.map(({ each }) => each.pod.namespace)).size,
        workloads: workloadsIn(all.map(({ each }) => each)),
        pods: all.length,
        ...total(requests),
      };
    })
    .sort((a, b) => byWeight(a, b) || byName(a.image, b.image));
}

export function totals(pods: readonly JudgedPod[], architecture: string) {
  const totalOf = (some: readonly JudgedPod[]) => ({
    workloads: workloadsIn(some),
    there: some.filter(({ on }) => on === architecture).length,
    ...shareOf(some),
  });
  const of = (verdict: ReportVerdict) => totalOf(pods.filter((each) => each.verdict === verdict));
  return { yes: of('yes'), pinned: of('pinned'), no: of('no'), unknown: of('unknown'), all: totalOf(pods) };
}

export function shareOf(pods: readonly JudgedPod[]): Share {
  return { pods: pods.length, ...total(pods.map(({ pod }) => pod.made.requests)) };
}

function total(requests: readonly Requests[]): Requests {
  const { cpu, memory } = requests.reduce(sum, noRequests);
  return { cpu: rounded(cpu), memory };
}

/** What pods wait for: the states of all blockers; `ready` if a pod has none. */
export function causesOf(pods: readonly Pick<JudgedPod, 'blockers'>[]): readonly State[] {
  const found = new Set<State>(
    pods.flatMap(({ blockers }) =>
      blockers.length === 0 ? (['ready'] as const) : blockers.map(({ cause }) => cause),
    ),
  );
  return states.filter((state) => found.has(state));
}

export function workloadsIn(pods: readonly Pick<JudgedPod, 'workload' | 'pod'>[]): number {
  return new Set(pods.map(({ workload, pod }) => workloadKey(workload, pod))).size;
}

export function workloadKey(
  { kind, name }: Pick<ReportedWorkload, 'kind' | 'name'>,
  { namespace }: Pick<ReportedPod, 'namespace'>,
): string {
  return `${namespace}/${kind}/${name}`;
}

function countsOf(names: readonly string[]): Readonly<Record<string, number>> {
  const groups = Map.groupBy(names.toSorted(byName), (name) => name);
  return Object.fromEntries([...groups].map(([name, all]) => [name, all.length]));
}

/** `undefined` for no counts. */
export function countsText(on: Readonly<Record<string, number>>): string | undefined {
  const places = Object.entries(on);
  if (places.length < 2) return places[0]?.[0];
  return places.map(([name, count]) => `${name} ${count}`).join(', ');
}

function rank({ verdict }: { readonly verdict: ReportVerdict }): number {
  return verdicts.indexOf(verdict);
}

function byWeight(a: Judgement & Requests, b: Judgement & Requests): number {
  return rank(a) - rank(b) || b.cpu - a.cpu || b.memory - a.memory;
}
