/** Tables for people: columns as wide as their widest cell, two spaces between them. */

/** Stands where a cell has nothing to say. */
export const nothing = '-';

/**
 * Sets a table.
 * @param rows cells by row, the header first; each row has as many as the header
 * @param indent put before each line
 */
export function table(rows: readonly (readonly string[])[], indent = ''): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  return rows
    .map((row) => indent + row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}
