/** `report --html`: one page without requests. `npm run docs` builds its script and style from `page/`. */
import { createHash } from 'node:crypto';
import { printable } from '../../../src/names/printable.ts';
import { byName } from '../../../src/names/values.ts';
import { programVersion } from '../../program/version.ts';
import { imageColumns, maxNameBytes, workloadColumns, type Column, type Report } from '../contents.ts';
import { causesOf, shareOf, workloadsIn } from '../rows.ts';
import type { JudgedPod, State } from '../verdict.ts';
import { pageScript, pageStyle } from './assets.ts';
import { firstChanges } from './changes.ts';
import { ratio, type PageData, type PageTable } from './data.ts';
import { embeddedJson, Html, markup, section } from './html.ts';
import { changesSection, moneySection, stateLabels, todaySection } from './sections.ts';

export function reportPage(report: Report): string {
  const { pods, architecture, namespaces, lookups, made, money } = report;
  const changes = firstChanges(pods);
  const data: PageData = {
    causeLabels: stateLabels,
    ...(money && { currency: money.list.currency }),
    tables: pageTables(report),
  };
  const scope = namespaces.length === 0 ? 'all namespaces' : `namespaces ${namespaces.join(', ')}`;
  const madeAt = made.toISOString().slice(0, 16).replace('T', ' ');
  const title = `Pods that can run on ${architecture}`;
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>${new Html(pageStyle)}</style>
</head>
<body>
<a class="skip" href="#table">Skip to the table</a>
<header><h1>${title}</h1>
<p>${madeAt} UTC, ${printable(scope, 1024)}, archwright ${programVersion.version}. Images: looked up ${printable(lookups, 1024)}.</p></header>
<main>
${todaySection(pods, architecture)}
${changesSection(changes, report)}
${money && moneySection(money, architecture, pods, changes)}
${section(
  'all',
  'All workloads, namespaces and images',
  markup`<noscript><p>The table needs JavaScript, which is part of this file.</p></noscript>
<div id="table" tabindex="-1"></div>`,
)}
</main>
<footer><p>CPU and memory are the requests of the pods. Pods that have ended and mirror pods are not counted.</p></footer>
<script type="application/json" id="data">${embeddedJson(data)}</script>
<script>${new Html(pageScript)}</script>
</body>
</html>
`.text;
}

const policy = [
  "default-src 'none'",
  `script-src ${sourceHash(pageScript)}`,
  `style-src ${sourceHash(pageStyle)}`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

function sourceHash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

function pageTables(report: Report): readonly PageTable[] {
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
