/** The rows of the page's table by namespace, workload and image. The page's script shows them. */
import { byName } from '../../../src/names/values.ts';
import { printable } from '../../../src/names/printable.ts';
import { mainCause, type State } from '../verdict.ts';
import { imageColumns, maxNameBytes, workloadColumns, type Column } from '../columns.ts';
import { causesOf, workloadKey, type JudgedPod, type WorkloadRow } from '../rows.ts';
import type { Report } from '../contents.ts';
import type { PageTable, Row } from './data.ts';
import { ratio, shareOf } from './shares.ts';

export function pageTables(report: Report): readonly PageTable[] {
  const weighed = <Row extends Pick<WorkloadRow, 'requests'>>(rows: readonly Row[]) =>
    rows.map((row) => ({ ...row, weight: row.requests.cpu }));
  return [
    tableOf('workloads', 'Workloads', weighed(report.workloads), workloadColumns(report)),
    namespaceTable(report.pods),
    tableOf('images', 'Images', weighed(report.images), imageColumns(report)),
  ];
}

function namespaceTable(pods: readonly JudgedPod[]): PageTable {
  const items = [...Map.groupBy(pods, ({ pod }) => pod.namespace)].map(([namespace, group]) => {
    const all = shareOf(group);
    const ready = shareOf(group.filter((pod) => mainCause(pod) === undefined));
    return { namespace, group, all, ready, causes: causesOf(group), weight: all.cpu - ready.cpu };
  });
  return tableOf('namespaces', 'Namespaces', items, [
    { label: 'Namespace', kind: 'text', cell: ({ namespace }) => printable(namespace, maxNameBytes) },
    {
      label: 'Workloads',
      kind: 'count',
      cell: ({ group }) => new Set(group.map(({ workload, pod }) => workloadKey(workload, pod))).size,
    },
    { label: 'Pods', kind: 'count', cell: ({ all }) => all.pods },
    { label: 'Pods that can run', kind: 'share', cell: ({ all, ready }) => ratio(ready.pods, all.pods) },
    { label: 'CPU', kind: 'cores', cell: ({ all }) => all.cpu },
    { label: 'CPU that can run', kind: 'share', cell: ({ all, ready }) => ratio(ready.cpu, all.cpu) },
    { label: 'Memory', kind: 'bytes', cell: ({ all }) => all.memory },
    {
      label: 'Memory that can run',
      kind: 'share',
      cell: ({ all, ready }) => ratio(ready.memory, all.memory),
    },
    { label: 'State', kind: 'causes', cell: ({ causes }) => causes },
  ]);
}

interface Item {
  readonly causes: readonly State[];
  /** CPU requests that are blocked, or could move. */
  readonly weight: number;
}

/** Rows that are blocked come first. */
function tableOf<T extends Item>(
  id: string,
  label: string,
  items: readonly T[],
  columns: readonly Column<T>[],
): PageTable {
  const isReady = ({ causes }: Item): number => (causes.length === 1 && causes[0] === 'ready' ? 1 : 0);
  const rows = items
    .map((item) => ({ item, cells: columns.map(({ cell }) => cell(item)) }))
    .toSorted(
      (a, b) =>
        isReady(a.item) - isReady(b.item) || b.item.weight - a.item.weight || byName(namesOf(a), namesOf(b)),
    )
    .map(({ item: { causes }, cells }) => ({ cells, causes }));
  return { id, label, columns: columns.map(({ label, kind }) => ({ label, kind })), rows };
}

function namesOf({ cells }: Pick<Row, 'cells'>): string {
  return cells.slice(0, 2).join('/');
}
