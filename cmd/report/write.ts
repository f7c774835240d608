/** A report as a table for people, as CSV for spreadsheets, and as JSON for programs. */
import { jsonText, table } from '../program/table.ts';
import { verdicts } from './verdict.ts';
import type { NewerTags } from './newer-tags.ts';
import type { Money } from './prices/price-book.ts';
import type { PriceList } from './prices/price-file.ts';
import type { Savings } from './prices/savings.ts';
import { bytes, rounded } from './amounts.ts';
import { csvCells, imageColumns, terminalCells, workloadColumns, type Extent } from './columns.ts';
import {
  imageRows,
  totals,
  workloadRows,
  type ImageRow,
  type JudgedPod,
  type Total,
  type WorkloadRow,
} from './rows.ts';

export interface Report extends Extent {
  /** Who looked up the images, and with which credentials: `from this machine, with …`. */
  readonly lookups: string;
  readonly totals: Readonly<Record<(typeof verdicts)[number] | 'all', Total>>;
  readonly workloads: readonly WorkloadRow[];
  readonly images: readonly ImageRow[];
  /** In a month, if there are prices: of pods without a blocker, and of all. */
  readonly savings?: Pick<PriceList, 'currency' | 'hoursPerMonth'> & {
    readonly ready: Savings | undefined;
    readonly all: Savings | undefined;
  };
}

export interface ReportExtras {
  /** Absent without prices. */
  readonly money?: Money | undefined;
  /** Absent: they were not looked up. */
  readonly newerTags?: NewerTags | undefined;
}

export function reportOf(
  pods: readonly JudgedPod[],
  { architecture, lookups, money, newerTags }: Pick<Report, 'architecture' | 'lookups'> & ReportExtras,
): Report {
  return {
    architecture,
    lookups,
    totals: totals(pods, architecture),
    workloads: workloadRows(pods, (some) => money?.savings.of(some)?.saved),
    images: imageRows(pods).map((row) => {
      const newerTag = newerTags?.byImage.get(row.image);
      return newerTag === undefined ? row : { ...row, newerTag };
    }),
    currency: money?.list.currency,
    hasNewerTags: newerTags !== undefined,
    ...(money && { savings: savingsOf(pods, money) }),
  };
}

function savingsOf(
  pods: readonly JudgedPod[],
  { list: { currency, hoursPerMonth }, savings }: Money,
): Report['savings'] & object {
  const ready = savings.of(pods.filter(({ blockers }) => blockers.length === 0));
  return { currency, hoursPerMonth, ready, all: savings.of(pods) };
}

export type By = 'workload' | 'image';

export function asTable(report: Report, by: By): string {
  const { architecture, lookups, totals, workloads, images } = report;
  const head = [architecture.toUpperCase(), 'WORKLOADS', 'PODS', 'THERE', 'CPU', 'MEMORY'];
  const sums = [...verdicts, 'all' as const].map((verdict) => {
    const { workloads: owners, pods, there, requests } = totals[verdict];
    return [verdict, `${owners}`, `${pods}`, `${there}`, ...amounts(requests)];
  });
  const rows =
    by === 'image'
      ? terminalCells(imageColumns(report), images)
      : terminalCells(workloadColumns(report), workloads);
  return `${table([head, ...sums])}\n${table(rows)}\nImages: looked up ${lookups}.\n`;
}

export function asCsv(report: Report, by: By): string {
  const { workloads, images } = report;
  return csvLines(
    by === 'image' ? csvCells(imageColumns(report), images) : csvCells(workloadColumns(report), workloads),
  );
}

function csvLines(lines: readonly (readonly unknown[])[]): string {
  return lines.map((line) => `${line.map(csvCell).join(',')}\r\n`).join('');
}

/**
 * RFC 4180. Names and messages are untrusted: what a spreadsheet would take for a formula becomes a text. In
 * many languages a spreadsheet separates cells at semicolons, and reads full-width signs as plain ones.
 */
function csvCell(value: unknown): string {
  if (typeof value !== 'string') return value === undefined ? '' : JSON.stringify(value);
  // The sign first: at each space, a look behind would read all spaces before it.
  const text = value.replaceAll(/^(?=[=+\-@＝＋－＠\t\r])|(?=[=+\-@＝＋－＠])(?<=[;\r\n] *)/g, "'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The whole report; documented in `docs/use/report.md`. */
export function asJson({ architecture, lookups, totals, workloads, images, savings }: Report): string {
  const document = {
    architecture,
    lookups,
    totals: jsonTotals(totals),
    workloads: workloads.map(flat),
    images: images.map(flat),
    savings,
  };
  return jsonText(document);
}

export function jsonTotals(totals: Report['totals']): object {
  return Object.fromEntries(Object.entries(totals).map(([verdict, total]) => [verdict, flat(total)]));
}

/** With the requests as numbers beside the other fields. */
function flat<T extends Pick<Total, 'requests'>>({ requests, ...rest }: T) {
  return { ...rest, cpu: rounded(requests.cpu), memory: requests.memory };
}

function amounts({ cpu, memory }: Total['requests']): readonly string[] {
  return [String(rounded(cpu)), bytes(memory)];
}
