/** What the program shares with the page's script, which runs in a browser: its data, and numbers as people read them. */

/** `range`: a pair of amounts. `causes`: the words that `causeLabels` explains. */
export type ColumnKind = 'text' | 'count' | 'cores' | 'bytes' | 'share' | 'range' | 'causes';

export type Cell = string | number | readonly [low: number, high: number] | readonly string[] | null;

export interface Column {
  readonly label: string;
  readonly kind: ColumnKind;
}

export interface PageTable {
  readonly id: string;
  readonly label: string;
  readonly columns: readonly Column[];
  /** Cells by row. */
  readonly rows: readonly (readonly Cell[])[];
}

export interface PageData {
  readonly causeLabels: Readonly<Record<string, string>>;
  /** ISO 4217, if there are prices. */
  readonly currency?: string;
  readonly tables: readonly PageTable[];
}

/** Rounds to a thousandth, the smallest unit of Kubernetes. */
export function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

const units = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];

/** Three digits at most: `512Mi`, `1.5Gi`. */
export function bytes(value: number): string {
  let unit = 0;
  let left = value;
  while (left >= 1024 && unit < units.length - 1) {
    left /= 1024;
    unit++;
  }
  return `${left < 10 ? Math.round(left * 10) / 10 : Math.round(left)}${units[unit]}`;
}

/** A whole number of percent, never 100 % for less than all nor 0 % for more than nothing. */
export function percent(share: number): string {
  const rounded = Math.round(share * 100);
  if (share < 1 && rounded >= 100) return '> 99 %';
  return share > 0 && rounded <= 0 ? '< 1 %' : `${rounded} %`;
}

/** `$1.00 to $2.00`, or `–` if nothing is known. */
export function rangeText(range: readonly [low: number, high: number] | undefined, currency: string): string {
  if (range === undefined) return '–';
  const money = new Intl.NumberFormat('en', { style: 'currency', currency });
  const [from, to] = [money.format(range[0]), money.format(range[1])];
  return from === to ? from : `${from} to ${to}`;
}

/** @returns between 0 and 1; 1 for a part of nothing */
export function ratio(part: number, whole: number): number {
  return whole === 0 ? 1 : part / whole;
}
