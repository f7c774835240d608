/** What the page's script reads: types only, because the script runs in a browser. */

/** `range`: a pair of amounts. `causes`: the words that `causeLabels` explains. */
export type ColumnKind = 'text' | 'count' | 'cores' | 'bytes' | 'share' | 'range' | 'causes';

export type Cell = string | number | readonly [low: number, high: number] | readonly string[] | null;

export interface Column {
  readonly label: string;
  readonly kind: ColumnKind;
}

export interface Row {
  readonly cells: readonly Cell[];
  /** What the filter compares: causes, or `ready`. */
  readonly causes: readonly string[];
}

export interface PageTable {
  readonly id: string;
  readonly label: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
}

export interface PageData {
  readonly causeLabels: Readonly<Record<string, string>>;
  /** ISO 4217, if there are prices. */
  readonly currency?: string;
  readonly tables: readonly PageTable[];
}
