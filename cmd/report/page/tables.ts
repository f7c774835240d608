/** The rows of the page's table by namespace, workload and image. The page's script shows them. */
import { printable } from '../../../src/names/printable.ts';
import type { SavingsOf } from '../prices/savings.ts';
import { causes, mainCause } from '../blockers.ts';
import { byText, countsOf, countsText, imageRows, requestsOf, workloadKey, type JudgedPod } from '../rows.ts';
import type { Cell, Column, ColumnKind, PageTable, Row } from './data.ts';
import { ratio, shareOf, type State } from './shares.ts';

/** More of a message says nothing more about its cause. */
const maxWhyBytes = 512;
/** Names in the cluster have 253 bytes at most; an image has 128 of tag and 71 of digest beside its name. */
const maxNameBytes = 512;

export interface TableExtras {
  /** If there are prices. */
  readonly savings: SavingsOf | undefined;
  /** By image, if they were looked up. */
  readonly newerTags: ReadonlyMap<string, string> | undefined;
}

export function pageTables(
  pods: readonly JudgedPod[],
  { savings, newerTags }: TableExtras,
): readonly PageTable[] {
  return [workloadTable(pods, savings), namespaceTable(pods), imageTable(pods, newerTags)];
}

function columns(...named: readonly (readonly [label: string, kind: ColumnKind])[]): readonly Column[] {
  return named.map(([label, kind]) => ({ label, kind }));
}

function workloadTable(pods: readonly JudgedPod[], savings: SavingsOf | undefined): PageTable {
  const groups = Map.groupBy(pods, ({ workload, pod, judged, blockers }) =>
    JSON.stringify([workloadKey(workload, pod), judged.why, blockers]),
  );
  const rows = [...groups.values()].flatMap((group): readonly Weighted[] => {
    const [first] = group;
    if (first === undefined) return [];
    const { pod, workload, judged } = first;
    const requests = requestsOf(group);
    const on = countsText(countsOf(group.flatMap((each) => each.on ?? [])));
    const found = causesOf([first]);
    const cells: readonly Cell[] = [
      name(pod.namespace),
      name(`${workload.kind}/${workload.name}`),
      group.length,
      name(on ?? ''),
      requests.cpu,
      requests.memory,
      ...(savings === undefined ? [] : [savings.of(group)?.saved ?? null]),
      found,
      printable(judged.why, maxWhyBytes),
    ];
    return [{ cells, causes: found, weight: requests.cpu }];
  });
  return {
    id: 'workloads',
    label: 'Workloads',
    columns: columns(
      ['Namespace', 'text'],
      ['Workload', 'text'],
      ['Pods', 'count'],
      ['Runs on', 'text'],
      ['CPU', 'cores'],
      ['Memory', 'bytes'],
      ...(savings === undefined ? [] : ([['Saving a month', 'range']] as const)),
      ['State', 'causes'],
      ['Why', 'text'],
    ),
    rows: blockedFirst(rows),
  };
}

function namespaceTable(pods: readonly JudgedPod[]): PageTable {
  const groups = Map.groupBy(pods, ({ pod }) => pod.namespace);
  const rows = [...groups].map(([namespace, group]): Weighted => {
    const all = shareOf(group);
    const ready = shareOf(group.filter((pod) => mainCause(pod) === undefined));
    const workloads = new Set(group.map(({ workload, pod }) => workloadKey(workload, pod))).size;
    const found = causesOf(group);
    const cells: readonly Cell[] = [
      name(namespace),
      workloads,
      all.pods,
      ratio(ready.pods, all.pods),
      all.cpu,
      ratio(ready.cpu, all.cpu),
      all.memory,
      ratio(ready.memory, all.memory),
      found,
    ];
    return { cells, causes: found, weight: all.cpu - ready.cpu };
  });
  return {
    id: 'namespaces',
    label: 'Namespaces',
    columns: columns(
      ['Namespace', 'text'],
      ['Workloads', 'count'],
      ['Pods', 'count'],
      ['Pods that can run', 'share'],
      ['CPU', 'cores'],
      ['CPU that can run', 'share'],
      ['Memory', 'bytes'],
      ['Memory that can run', 'share'],
      ['State', 'causes'],
    ),
    rows: blockedFirst(rows),
  };
}

function imageTable(
  pods: readonly JudgedPod[],
  newerTags: ReadonlyMap<string, string> | undefined,
): PageTable {
  const causeByImage = new Map(
    pods.flatMap(({ blockers }) =>
      blockers.flatMap(({ image, cause }) => (image === undefined ? [] : [[image, cause] as const])),
    ),
  );
  const rows = imageRows(pods).map((row): Weighted => {
    const found = [causeByImage.get(row.image) ?? 'ready'];
    const cells: readonly Cell[] = [
      name(row.image),
      row.namespaces,
      row.workloads,
      row.pods,
      row.requests.cpu,
      row.requests.memory,
      found,
      row.verdict === 'unknown' ? '' : printable(row.architectures?.join(' ') ?? 'any', maxNameBytes),
      ...(newerTags === undefined ? [] : [name(newerTags.get(row.image) ?? '')]),
      printable(row.why, maxWhyBytes),
    ];
    return { cells, causes: found, weight: row.requests.cpu };
  });
  return {
    id: 'images',
    label: 'Images',
    columns: columns(
      ['Image', 'text'],
      ['Namespaces', 'count'],
      ['Workloads', 'count'],
      ['Pods', 'count'],
      ['CPU', 'cores'],
      ['Memory', 'bytes'],
      ['State', 'causes'],
      ['Architectures', 'text'],
      ...(newerTags === undefined ? [] : ([['Newer tag', 'text']] as const)),
      ['Why', 'text'],
    ),
    rows: blockedFirst(rows),
  };
}

interface Weighted extends Row {
  /** CPU requests that are blocked, or could move. */
  readonly weight: number;
}

function blockedFirst(rows: readonly Weighted[]): readonly Row[] {
  const isReady = ({ causes }: Row): number => (causes.length === 1 && causes[0] === 'ready' ? 1 : 0);
  return rows
    .toSorted((a, b) => isReady(a) - isReady(b) || b.weight - a.weight || byText(namesOf(a), namesOf(b)))
    .map(({ cells, causes }) => ({ cells, causes }));
}

function namesOf({ cells }: Row): string {
  return cells.slice(0, 2).join('/');
}

/** Of all blockers; `ready` if a pod has none. */
function causesOf(pods: readonly JudgedPod[]): readonly State[] {
  const found = new Set(pods.flatMap(({ blockers }) => blockers.map(({ cause }) => cause)));
  const isReady = pods.some(({ blockers }) => blockers.length === 0);
  return [...(isReady ? (['ready'] as const) : []), ...causes.filter((cause) => found.has(cause))];
}

function name(text: string): string {
  return printable(text, maxNameBytes);
}
