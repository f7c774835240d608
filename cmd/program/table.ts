/** Results as people read them, in tables, and as programs do, in JSON. */
import { printable } from '../../src/names/printable.ts';
import type { Streams } from './subcommand.ts';

export const nothing = '-';

export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

export interface Printer {
  readonly flags: { readonly output: string };
  readonly io: Pick<Streams, 'out'>;
}

/** Writes a result. @param document for `--output json` @param text for every other format */
export function print({ flags, io }: Printer, document: unknown, text: string): void {
  io.out(flags.output === 'json' ? jsonText(document) : text);
}

const maxCellBytes = 256;

/** Untrusted text as a cell. */
export function cell(text = ''): string {
  return printable(text, maxCellBytes) || nothing;
}

/** A column is defined once: its heading, and the text of a row. Untrusted text goes through `cell`. */
export type Column<Row> = readonly [heading: string, textOf: (row: Row) => string | number | undefined];

/** A table with headings. A cell without a text is `nothing`. */
export function tableOf<Row>(columns: readonly Column<Row>[], rows: readonly Row[], indent = ''): string {
  const head = columns.map(([heading]) => heading);
  const cells = rows.map((row) => columns.map(([, textOf]) => String(textOf(row) ?? '') || nothing));
  return table([head, ...cells], indent);
}

/** `1 pod`, `2 pods`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

/** Columns as wide as their widest cell, two spaces apart. @param rows cells by row; all have the same length */
export function table(rows: readonly (readonly string[])[], indent = ''): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    rows.reduce((widest, row) => Math.max(widest, row[column]?.length ?? 0), 0),
  );
  return rows
    .map((row) => indent + row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}
