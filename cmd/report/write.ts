/** A report as a table for people, as CSV for spreadsheets, and as JSON for programs. */
import { jsonText, table } from '../program/table.ts';
import { verdicts } from './verdict.ts';
import { bytes } from './amounts.ts';
import { csvCells, imageColumns, terminalCells, workloadColumns } from './columns.ts';
import type { Report } from './contents.ts';

export type By = 'workload' | 'image';

export function asTable(report: Report, by: By): string {
  const { architecture, lookups, totals, workloads, images } = report;
  const head = [architecture.toUpperCase(), 'WORKLOADS', 'PODS', 'THERE', 'CPU', 'MEMORY'];
  const sums = [...verdicts, 'all' as const].map((verdict) => {
    const { workloads: owners, pods, there, cpu, memory } = totals[verdict];
    return [verdict, ...[owners, pods, there, cpu].map(String), bytes(memory)];
  });
  const rows =
    by === 'image'
      ? terminalCells(imageColumns(report), images)
      : terminalCells(workloadColumns(report), workloads);
  return `${table([head, ...sums])}\n${table(rows)}\nImages: looked up ${lookups}.\n`;
}

export function asCsv(report: Report, by: By): string {
  const { workloads, images } = report;
  const lines =
    by === 'image' ? csvCells(imageColumns(report), images) : csvCells(workloadColumns(report), workloads);
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
  return jsonText({ architecture, lookups, totals, workloads, images, savings });
}
