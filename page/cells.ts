/** How cells are shown, sorted and searched. */
import {
  bytes,
  percent,
  rangeText,
  type Cell,
  type ColumnKind,
  type PageData,
} from '../cmd/report/page/data.ts';
import { element } from './element.ts';

const collator = new Intl.Collator('en', { numeric: true });
const count = new Intl.NumberFormat('en');
const cores = new Intl.NumberFormat('en', { maximumFractionDigits: 3 });

export function isNumeric(kind: ColumnKind): boolean {
  return kind !== 'text' && kind !== 'causes';
}

export function cellElement(
  cell: Cell,
  kind: ColumnKind,
  { causeLabels, currency = '' }: Pick<PageData, 'causeLabels' | 'currency'>,
): HTMLTableCellElement {
  if (isNumeric(kind)) return element('td', { class: 'n' }, numberText(cell, kind, currency));
  if (kind === 'causes' && Array.isArray(cell)) {
    const badges = (cell as readonly string[]).map((cause) =>
      element('span', { class: `badge ${cause}` }, causeLabels[cause] ?? cause),
    );
    return element('td', {}, ...badges);
  }
  return element('td', { class: 'name' }, String(cell ?? ''));
}

function numberText(cell: Cell, kind: ColumnKind, currency: string): string {
  if (typeof cell === 'object' && cell !== null) {
    const [low, high] = cell;
    return typeof low === 'number' && typeof high === 'number' ? rangeText([low, high], currency) : '';
  }
  if (typeof cell !== 'number') return '';
  if (kind === 'share') return percent(cell);
  if (kind === 'bytes') return bytes(cell);
  return (kind === 'cores' ? cores : count).format(cell);
}

/** Smaller first. Ranges compare by their upper ends. */
export function compareCells(a: Cell, b: Cell): number {
  return typeof a === 'string' && typeof b === 'string' ? collator.compare(a, b) : keyOf(a) - keyOf(b);
}

function keyOf(cell: Cell): number {
  if (typeof cell === 'number') return cell;
  if (!Array.isArray(cell)) return Number.NEGATIVE_INFINITY;
  const last = (cell as readonly (number | string)[]).at(-1);
  // Causes: those with fewer first.
  return typeof last === 'number' ? last : cell.length;
}

/** What a search looks at: texts and states. */
export function searchText(row: readonly Cell[], { causeLabels }: Pick<PageData, 'causeLabels'>): string {
  const texts = row.flatMap((cell) => {
    if (typeof cell === 'string') return cell;
    return Array.isArray(cell) ? cell.map((cause: string | number) => causeLabels[cause] ?? '') : [];
  });
  return texts.join('\n').toLowerCase();
}
