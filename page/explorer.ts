/** The table of workloads, namespaces and images: sorted, searched, filtered, and shown in pages. */
import type { Cell, PageData, PageTable } from '../cmd/report/page/data.ts';
import { cellElement, compareCells, isNumeric, searchText } from './cells.ts';
import { element } from './element.ts';

/** A browser lays out 100 rows in some milliseconds, 5,000 in seconds. */
const rowsPerPage = 100;

type Row = readonly Cell[];

interface Sort {
  readonly column: number;
  readonly descending: boolean;
}

interface Searchable {
  readonly row: Row;
  readonly text: string;
}

export class Explorer {
  readonly #data: PageData;
  readonly #search = element('input', { type: 'search', id: 'search', autocomplete: 'off' });
  readonly #filter = element('select', { id: 'filter' });
  readonly #status = element('p', { role: 'status' });
  readonly #previous = element('button', { type: 'button' }, 'Previous');
  readonly #next = element('button', { type: 'button' }, 'Next');
  readonly #head = element('thead');
  readonly #body = element('tbody');
  readonly #caption = element('caption', { class: 'hidden' });
  readonly #rows = new Map<PageTable, readonly Searchable[]>();
  #table: PageTable | undefined;
  #found: readonly Row[] = [];
  #sort: Sort | undefined;
  #page = 0;
  #isAll = false;

  constructor(data: PageData, place: HTMLElement) {
    this.#data = data;
    this.#search.addEventListener('input', () => this.#select());
    this.#filter.addEventListener('change', () => this.#select());
    this.#previous.addEventListener('click', () => this.#turnTo(this.#page - 1));
    this.#next.addEventListener('click', () => this.#turnTo(this.#page + 1));
    const table = element('table', {}, this.#caption, this.#head, this.#body);
    const region = { class: 'scroll', role: 'region', 'aria-labelledby': 'all', tabindex: '0' };
    place.replaceChildren(
      this.#controls(),
      element('div', region, table),
      element('nav', { class: 'pages', 'aria-label': 'Pages of the table' }, this.#previous, this.#next),
    );
    const [first] = data.tables;
    if (first !== undefined) this.#open(first);
  }

  /** For printing: all rows at once, or one page again. */
  showAll(isAll: boolean): void {
    this.#isAll = isAll;
    this.#show();
  }

  #controls(): HTMLElement {
    const choices = this.#data.tables.map((table, index) => {
      const radio = element('input', { type: 'radio', name: 'by', id: `by-${table.id}` });
      radio.checked = index === 0;
      radio.addEventListener('change', () => this.#open(table));
      return element('label', {}, radio, ` ${table.label}`);
    });
    const options = Object.entries(this.#data.causeLabels).map(([value, label]) =>
      element('option', { value }, label),
    );
    this.#filter.append(element('option', { value: '' }, 'all'), ...options);
    return element(
      'div',
      { class: 'controls' },
      element('fieldset', {}, element('legend', { class: 'hidden' }, 'Rows'), ...choices),
      element('label', {}, 'Search ', this.#search),
      element('label', {}, 'State ', this.#filter),
      this.#status,
    );
  }

  #open(table: PageTable): void {
    this.#table = table;
    this.#sort = undefined;
    this.#caption.textContent = table.label;
    this.#head.replaceChildren(element('tr', {}, ...table.columns.map((_, index) => this.#headOf(index))));
    this.#select();
  }

  #headOf(index: number): HTMLElement {
    const column = this.#table?.columns[index];
    const button = element('button', { type: 'button' }, column?.label ?? '');
    button.addEventListener('click', () => this.#sortBy(index));
    const numeric = column !== undefined && isNumeric(column.kind);
    return element('th', { scope: 'col', ...(numeric && { class: 'n' }) }, button);
  }

  /** Numbers start with the largest, texts with the first; a second click reverses the order. */
  #sortBy(column: number): void {
    const kind = this.#table?.columns[column]?.kind ?? 'text';
    const descending = this.#sort?.column === column ? !this.#sort.descending : isNumeric(kind);
    this.#sort = { column, descending };
    for (const [index, head] of [...(this.#head.rows[0]?.cells ?? [])].entries()) {
      if (index === column) head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    }
    this.#select();
  }

  /** Every word must be in the row. */
  #select(): void {
    const words = this.#search.value.toLowerCase().split(/\s+/);
    const cause = this.#filter.value;
    const found = this.#searchable()
      .filter(({ row, text }) => {
        const hasCause = cause === '' || row.some((cell) => Array.isArray(cell) && cell.includes(cause));
        return hasCause && words.every((word) => text.includes(word));
      })
      .map(({ row }) => row);
    this.#found = this.#sort === undefined ? found : sorted(found, this.#sort);
    this.#turnTo(0);
  }

  #searchable(): readonly Searchable[] {
    const table = this.#table;
    if (table === undefined) return [];
    const rows =
      this.#rows.get(table) ?? table.rows.map((row) => ({ row, text: searchText(row, this.#data) }));
    this.#rows.set(table, rows);
    return rows;
  }

  #turnTo(page: number): void {
    const last = Math.max(Math.ceil(this.#found.length / rowsPerPage) - 1, 0);
    this.#page = Math.min(Math.max(page, 0), last);
    this.#previous.disabled = this.#page === 0;
    this.#next.disabled = this.#page === last;
    this.#show();
  }

  #show(): void {
    const columns = this.#table?.columns ?? [];
    const start = this.#isAll ? 0 : this.#page * rowsPerPage;
    const shown = this.#found.slice(start, this.#isAll ? undefined : start + rowsPerPage);
    this.#body.replaceChildren(
      ...shown.map((row) =>
        element(
          'tr',
          {},
          ...columns.map(({ kind }, index) => cellElement(row[index] ?? null, kind, this.#data)),
        ),
      ),
    );
    const total = this.#found.length.toLocaleString('en');
    this.#status.textContent =
      shown.length === 0 ? 'No rows' : `Rows ${start + 1} to ${start + shown.length} of ${total}`;
  }
}

function sorted(rows: readonly Row[], { column, descending }: Sort): readonly Row[] {
  const sign = descending ? -1 : 1;
  return rows.toSorted((a, b) => sign * compareCells(a[column] ?? null, b[column] ?? null));
}
