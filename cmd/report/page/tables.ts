/** The rows of the page's table by namespace, workload and image. The page's script shows them. */
import { printable } from '../../../src/names/printable.ts';
import { byName } from '../../../src/names/values.ts';
import { imageColumns, maxNameBytes, workloadColumns, type Column, type Report } from '../contents.ts';
import { causesOf, shareOf, workloadsIn, type JudgedPod } from '../rows.ts';
import type { State } from '../verdict.ts';
import type { PageTable } from './data.ts';

export function pageTables(report: Report): readonly PageTable[] {
  return [
    tableOf('workloads', 'Workloads', report.workloads, workloadColumns(report)),
    tableOf('namespaces', 'Namespaces', namespaceRows(report.pods), namespaceColumns),
    tableOf('images', 'Images', report.images, imageColumns(report)),
  ];
}

/** Those with the most blocked CPU requests come first. */
function namespaceRows(pods: readonly JudgedPod[]) {
  return [...Map.groupBy(pods, ({ pod }) => pod.namespace)]
    .map(([namespace, group]) => ({
      namespace,
      workloads: workloadsIn(group),
      all: shareOf(group),
      ready: shareOf(group.filter(({ blockers }) => blockers.length === 0)),
      causes: causesOf(group),
    }))
    .sort((a, b) => b.all.cpu - b.ready.cpu - (a.all.cpu - a.ready.cpu) || byName(a.namespace, b.namespace));
}

const namespaceColumns: readonly Column<ReturnType<typeof namespaceRows>[number]>[] = [
  { label: 'Namespace', kind: 'text', cell: ({ namespace }) => printable(namespace, maxNameBytes) },
  { label: 'Workloads', kind: 'count', cell: ({ workloads }) => workloads },
  { label: 'Pods', kind: 'count', cell: ({ all }) => all.pods },
  { label: 'Pods that can run', kind: 'share', cell: ({ all, ready }) => ratio(ready.pods, all.pods) },
  { label: 'CPU', kind: 'cores', cell: ({ all }) => all.cpu },
  { label: 'CPU that can run', kind: 'share', cell: ({ all, ready }) => ratio(ready.cpu, all.cpu) },
  { label: 'Memory', kind: 'bytes', cell: ({ all }) => all.memory },
  { label: 'Memory that can run', kind: 'share', cell: ({ all, ready }) => ratio(ready.memory, all.memory) },
  { label: 'State', kind: 'causes', cell: ({ causes }) => causes },
];

/** Rows that are blocked come first, else in their order. */
function tableOf<T extends { readonly causes: readonly State[] }>(
  id: string,
  label: string,
  items: readonly T[],
  columns: readonly Column<T>[],
): PageTable {
  const isReady = ({ causes }: T): number => (causes.length === 1 && causes[0] === 'ready' ? 1 : 0);
  return {
    id,
    label,
    columns: columns.map(({ label, kind }) => ({ label, kind })),
    rows: items
      .toSorted((a, b) => isReady(a) - isReady(b))
      .map((item) => columns.map(({ cell }) => cell(item))),
  };
}

/** @returns between 0 and 1; 1 for a part of nothing */
export function ratio(part: number, whole: number): number {
  return whole === 0 ? 1 : part / whole;
}
