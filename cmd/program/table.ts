/** Plain-text tables: columns as wide as their widest cell, two spaces apart. */

/** An empty cell. */
export const nothing = '-';

/**
 * Formats a table.
 * @param rows cells by row, the header first; all rows have the same length
 * @param indent prefix of each line
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
