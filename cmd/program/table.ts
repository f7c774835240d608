/** Plain-text tables: columns as wide as their widest cell, two spaces apart. */
import { printable } from '../../src/names/printable.ts';

export const nothing = '-';

export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

const maxCellBytes = 256;

/** Untrusted text as a cell. */
export function cell(text: string): string {
  return printable(text, maxCellBytes) || nothing;
}

/** `1 pod`, `2 pods`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

/** @param rows cells by row, the header first; all rows have the same length */
export function table(rows: readonly (readonly string[])[], indent = ''): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    rows.reduce((widest, row) => Math.max(widest, row[column]?.length ?? 0), 0),
  );
  return rows
    .map((row) => indent + row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}
