/** The rows of the page's table by namespace, workload and image. The page's script shows them. */
import { byName } from '../../../src/names/values.ts';
import { printable } from '../../../src/names/printable.ts';
import type { SavingsOf } from '../prices/savings.ts';
import { causes, mainCause } from '../blockers.ts';
import {
  countsOf,
  countsText,
  imageRows,
  requestsOf,
  workloadKey,
  type ImageRow,
  type JudgedPod,
} from '../rows.ts';
import type { ReportExtras } from '../write.ts';
import type { Cell, ColumnKind, PageTable, Row } from './data.ts';
import { ratio, shareOf, type State } from './shares.ts';

/** More of a message says nothing more about its cause. */
const maxWhyBytes = 512;
/** Names in the cluster have 253 bytes at most; an image has 128 of tag and 71 of digest beside its name. */
const maxNameBytes = 512;

export function pageTables(
  pods: readonly JudgedPod[],
  { money, newerTags }: ReportExtras,
): readonly PageTable[] {
  return [workloadTable(pods, money?.savings), namespaceTable(pods), imageTable(pods, newerTags?.byImage)];
}

function workloadTable(pods: readonly JudgedPod[], savings: SavingsOf | undefined): PageTable {
  const groups = Map.groupBy(pods, ({ workload, pod, judged, blockers }) =>
    JSON.stringify([workloadKey(workload, pod), judged.why, blockers]),
  );
  const items = [...groups.values()].flatMap((group) =>
    group.slice(0, 1).map((first) => {
      const requests = requestsOf(group);
      return { ...first, group, requests, causes: causesOf([first]), weight: requests.cpu };
    }),
  );
  return tableOf('workloads', 'Workloads', items, [
    ['Namespace', 'text', ({ pod }) => name(pod.namespace)],
    ['Workload', 'text', ({ workload }) => name(`${workload.kind}/${workload.name}`)],
    ['Pods', 'count', ({ group }) => group.length],
    ['Runs on', 'text', ({ group }) => name(countsText(countsOf(group.flatMap(({ on }) => on ?? []))) ?? '')],
    ['CPU', 'cores', ({ requests }) => requests.cpu],
    ['Memory', 'bytes', ({ requests }) => requests.memory],
    savings && ['Saving a month', 'range', ({ group }) => savings.of(group)?.saved ?? null],
    ['State', 'causes', ({ causes }) => causes],
    ['Why', 'text', ({ judged }) => printable(judged.why, maxWhyBytes)],
  ]);
}

function namespaceTable(pods: readonly JudgedPod[]): PageTable {
  const items = [...Map.groupBy(pods, ({ pod }) => pod.namespace)].map(([namespace, group]) => {
    const all = shareOf(group);
    const ready = shareOf(group.filter((pod) => mainCause(pod) === undefined));
    return { namespace, group, all, ready, causes: causesOf(group), weight: all.cpu - ready.cpu };
  });
  return tableOf('namespaces', 'Namespaces', items, [
    ['Namespace', 'text', ({ namespace }) => name(namespace)],
    [
      'Workloads',
      'count',
      ({ group }) => new Set(group.map(({ workload, pod }) => workloadKey(workload, pod))).size,
    ],
    ['Pods', 'count', ({ all }) => all.pods],
    ['Pods that can run', 'share', ({ all, ready }) => ratio(ready.pods, all.pods)],
    ['CPU', 'cores', ({ all }) => all.cpu],
    ['CPU that can run', 'share', ({ all, ready }) => ratio(ready.cpu, all.cpu)],
    ['Memory', 'bytes', ({ all }) => all.memory],
    ['Memory that can run', 'share', ({ all, ready }) => ratio(ready.memory, all.memory)],
    ['State', 'causes', ({ causes }) => causes],
  ]);
}

function imageTable(
  pods: readonly JudgedPod[],
  newerTags: ReadonlyMap<string, string> | undefined,
): PageTable {
  const causeByImage = new Map<string | undefined, State>(
    pods.flatMap(({ blockers }) => blockers.map(({ image, cause }) => [image, cause])),
  );
  const items = imageRows(pods).map((row) => {
    return { ...row, causes: [causeByImage.get(row.image) ?? 'ready'], weight: row.requests.cpu };
  });
  const names = ({ verdict, architectures }: ImageRow): string =>
    verdict === 'unknown' ? '' : (architectures?.join(' ') ?? 'any');
  return tableOf('images', 'Images', items, [
    ['Image', 'text', ({ image }) => name(image)],
    ['Namespaces', 'count', ({ namespaces }) => namespaces],
    ['Workloads', 'count', ({ workloads }) => workloads],
    ['Pods', 'count', (row) => row.pods],
    ['CPU', 'cores', ({ requests }) => requests.cpu],
    ['Memory', 'bytes', ({ requests }) => requests.memory],
    ['State', 'causes', ({ causes }) => causes],
    ['Architectures', 'text', (row) => name(names(row))],
    newerTags && ['Newer tag', 'text', ({ image }) => name(newerTags.get(image) ?? '')],
    ['Why', 'text', ({ why }) => printable(why, maxWhyBytes)],
  ]);
}

interface Item {
  readonly causes: readonly State[];
  /** CPU requests that are blocked, or could move. */
  readonly weight: number;
}

type ColumnOf<T> = readonly [label: string, kind: ColumnKind, cell: (item: T) => Cell];

/** Rows that are blocked come first. */
function tableOf<T extends Item>(
  id: string,
  label: string,
  items: readonly T[],
  optional: readonly (ColumnOf<T> | undefined)[],
): PageTable {
  const columns = optional.filter((column) => column !== undefined);
  const isReady = ({ causes }: Item): number => (causes.length === 1 && causes[0] === 'ready' ? 1 : 0);
  const rows = items
    .map((item) => ({ item, cells: columns.map(([, , cell]) => cell(item)) }))
    .toSorted(
      (a, b) =>
        isReady(a.item) - isReady(b.item) || b.item.weight - a.item.weight || byName(namesOf(a), namesOf(b)),
    )
    .map(({ item: { causes }, cells }) => ({ cells, causes }));
  return { id, label, columns: columns.map(([label, kind]) => ({ label, kind })), rows };
}

function namesOf({ cells }: Pick<Row, 'cells'>): string {
  return cells.slice(0, 2).join('/');
}

/** Causes of all blockers; `ready` if a pod has none. */
function causesOf(pods: readonly JudgedPod[]): readonly State[] {
  const found = new Set(pods.flatMap(({ blockers }) => blockers.map(({ cause }) => cause)));
  const isReady = pods.some(({ blockers }) => blockers.length === 0);
  return [...(isReady ? (['ready'] as const) : []), ...causes.filter((cause) => found.has(cause))];
}

function name(text: string): string {
  return printable(text, maxNameBytes);
}
