/**
 * What a report says, and its columns, each defined once for the terminal, CSV and the page. A report is a
 * table for people, CSV for spreadsheets, or JSON for programs; `page/` writes the page.
 */
import { maxImageBytes, printable } from '../../src/names/printable.ts';
import { cell, nothing, tableOf, type Column as TableColumn } from '../program/table.ts';
import type { Requests } from './pods.ts';
import { countsText, imageRows, totals, workloadRows, type WorkloadRow } from './rows.ts';
import { bytes, rangeText, type Cell, type ColumnKind } from './page/data.ts';
import { verdicts, type JudgedPod } from './verdict.ts';
import type { NewerTags } from './newer-tags.ts';
import type { Money } from './prices/savings.ts';

interface Findings {
  readonly pods: readonly JudgedPod[];
  readonly architecture: string;
  /** Namespaces that the report is limited to; empty: all. */
  readonly namespaces: readonly string[];
  /** Who looked up the images, and with which credentials: `from this machine, with …`. */
  readonly lookups: string;
  readonly made: Date;
  /** Absent without prices. */
  readonly money?: Money | undefined;
  /** Absent: they were not looked up. */
  readonly newerTags?: NewerTags | undefined;
}

export type Report = ReturnType<typeof reportOf>;
type ImageRow = Report['images'][number];

export function reportOf(findings: Findings) {
  const { pods, architecture, money, newerTags } = findings;
  return {
    ...findings,
    totals: totals(pods, architecture),
    workloads: workloadRows(pods, money),
    /** Each image with a newer tag that has the architecture, if one was looked for and found. */
    images: imageRows(pods).map((row) => ({ ...row, newerTag: newerTags?.byImage.get(row.image) })),
    /** Savings per month, of pods without a blocker and of all; absent without prices. */
    savings: money && {
      currency: money.list.currency,
      hoursPerMonth: money.list.hoursPerMonth,
      ready: money.savingsOf(pods.filter(({ blockers }) => blockers.length === 0)),
      all: money.savingsOf(pods),
    },
  };
}

export type By = 'workload' | 'image';

/** The rest of a longer message adds nothing about its cause. */
const maxWhyBytes = 512;
/** Names in the cluster have 253 bytes at most; an image has 128 of tag and 71 of digest beside its name. */
export const maxNameBytes = 512;

export interface Column<Row> {
  /** Heading on the page. */
  readonly label: string;
  /** Heading in the terminal, in upper case, and in CSV, if it is another one. */
  readonly short?: string;
  readonly kind: ColumnKind;
  readonly cell: (row: Row) => Cell;
  /** The text in the terminal. Default: by the kind. */
  readonly text?: (row: Row) => string;
  /** Values in CSV by their headings. Default: the cell. */
  readonly csv?: Readonly<Record<string, (row: Row) => unknown>>;
}

export function workloadColumns({
  architecture,
  money,
}: Pick<Report, 'architecture' | 'money'>): readonly Column<WorkloadRow>[] {
  return [
    { label: 'Namespace', kind: 'text', cell: ({ namespace }) => name(namespace) },
    {
      label: 'Workload',
      kind: 'text',
      cell: (row) => name(`${row.kind}/${row.name}`),
      csv: { kind: ({ kind }) => name(kind), name: (row) => name(row.name) },
    },
    { label: 'Pods', kind: 'count', cell: ({ pods }) => pods },
    { label: 'Decided', kind: 'text', cell: ({ decided }) => countsText(decided) ?? '' },
    { label: 'Runs on', short: 'on', kind: 'text', cell: ({ on }) => name(countsText(on) ?? '') },
    ...requestColumns,
    ...(money ? [savingColumn(money.list.currency)] : []),
    stateColumn(architecture),
    whyColumn,
  ];
}

export function imageColumns({
  architecture,
  newerTags,
}: Pick<Report, 'architecture' | 'newerTags'>): readonly Column<ImageRow>[] {
  return [
    { label: 'Image', kind: 'text', cell: ({ image }) => name(image) },
    { label: 'Namespaces', kind: 'count', cell: ({ namespaces }) => namespaces },
    { label: 'Workloads', kind: 'count', cell: ({ workloads }) => workloads },
    { label: 'Pods', kind: 'count', cell: ({ pods }) => pods },
    ...requestColumns,
    stateColumn(architecture),
    {
      label: 'Architectures',
      kind: 'text',
      cell: ({ verdict, architectures }) =>
        verdict === 'unknown' ? '' : name(architectures?.join(' ') ?? 'any'),
    },
    ...(newerTags ? [newerTagColumn] : []),
    whyColumn,
  ];
}

const requestColumns: readonly Column<Requests>[] = [
  { label: 'CPU', kind: 'cores', cell: ({ cpu }) => cpu },
  { label: 'Memory', kind: 'bytes', cell: ({ memory }) => memory },
];

const whyColumn: Column<Pick<WorkloadRow, 'why'>> = {
  label: 'Why',
  kind: 'text',
  cell: ({ why }) => printable(why, maxWhyBytes),
  text: ({ why }) => why || nothing,
};

const newerTagColumn: Column<ImageRow> = {
  label: 'Newer tag',
  kind: 'text',
  cell: ({ newerTag = '' }) => printable(newerTag, maxImageBytes),
};

function stateColumn(architecture: string): Column<Pick<WorkloadRow, 'causes' | 'verdict'>> {
  return {
    label: 'State',
    short: architecture,
    kind: 'causes',
    cell: ({ causes }) => causes,
    text: ({ verdict }) => verdict,
    csv: { [architecture]: ({ verdict }) => verdict },
  };
}

function savingColumn(currency: string): Column<WorkloadRow> {
  return {
    label: 'Saving per month',
    short: 'saving',
    kind: 'range',
    cell: ({ saved }) => saved ?? null,
    text: ({ saved }) => (saved === undefined ? nothing : rangeText(saved, currency)),
    csv: {
      [`saving low ${currency}`]: ({ saved }) => saved?.[0],
      [`saving high ${currency}`]: ({ saved }) => saved?.[1],
    },
  };
}

function name(text: string): string {
  return printable(text, maxNameBytes);
}

function terminalTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const columnOf = ({ label, short = label, kind, cell: cellOf, text }: Column<Row>): TableColumn<Row> => {
    const byKind = (row: Row): string => {
      const value = cellOf(row);
      return typeof value === 'number' && kind === 'bytes' ? bytes(value) : cell(String(value));
    };
    return [short.toUpperCase(), text ?? byKind];
  };
  return tableOf(columns.map(columnOf), rows);
}

export function asTable(report: Report, by: By): string {
  const { architecture, lookups, totals, workloads, images } = report;
  const sums: readonly TableColumn<keyof typeof totals>[] = [
    [architecture.toUpperCase(), (verdict) => verdict],
    ['WORKLOADS', (verdict) => totals[verdict].workloads],
    ['PODS', (verdict) => totals[verdict].pods],
    ['THERE', (verdict) => totals[verdict].there],
    ['CPU', (verdict) => totals[verdict].cpu],
    ['MEMORY', (verdict) => bytes(totals[verdict].memory)],
  ];
  const rows =
    by === 'image'
      ? terminalTable(imageColumns(report), images)
      : terminalTable(workloadColumns(report), workloads);
  return `${tableOf(sums, [...verdicts, 'all'])}\n${rows}\nImages: looked up ${lookups}.\n`;
}

export function asCsv(report: Report, by: By): string {
  return by === 'image'
    ? csvText(imageColumns(report), report.images)
    : csvText(workloadColumns(report), report.workloads);
}

function csvText<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const all = columns.flatMap(({ label, short = label, cell: cellOf, csv }) =>
    Object.entries(csv ?? { [short.toLowerCase()]: cellOf }),
  );
  const lines = [all.map(([head]) => head), ...rows.map((row) => all.map(([, valueOf]) => valueOf(row)))];
  return lines.map((line) => `${line.map(csvCell).join(',')}\r\n`).join('');
}

/**
 * RFC 4180. Names and messages are untrusted: what a spreadsheet would take for a formula becomes a text. In
 * many languages a spreadsheet separates cells at semicolons, and reads full-width signs as plain ones.
 */
function csvCell(value: unknown): string {
  if (typeof value !== 'string') return value === undefined ? '' : JSON.stringify(value);
  const text = value.replaceAll(/(^|; *)(?=[=+\-@＝＋－＠])/g, "$1'");
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The whole report as JSON; documented in `docs/use/report.md`. */
export function documentOf({ architecture, lookups, totals, workloads, images, savings }: Report): object {
  return { architecture, lookups, totals, workloads, images, savings };
}
