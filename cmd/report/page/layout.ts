/** Sections of the page and their tables. A wide table scrolls by itself, with the keyboard too. */
import { markup, type Html, type Value } from './html.ts';

export function section(id: string, title: string, ...content: readonly Value[]): Html {
  return markup`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>${content}</section>`;
}

/** A number is aligned to the right; it can head several columns. */
export type Head = string | { readonly number: string; readonly columns?: number };

/** @param headingId of the heading that names the table */
export function table(headingId: string, heads: readonly Head[], rows: readonly Html[]): Html {
  return markup`<div class="scroll" role="region" aria-labelledby="${headingId}" tabindex="0"><table>
<thead><tr>${heads.map(headCell)}</tr></thead>
<tbody>${rows}</tbody>
</table></div>`;
}

function headCell(head: Head): Html {
  if (typeof head === 'string') return markup`<th scope="col">${head}</th>`;
  const { number, columns } = head;
  if (columns === undefined) return markup`<th scope="col" class="n">${number}</th>`;
  return markup`<th scope="colgroup" colspan="${columns}" class="n">${number}</th>`;
}

export function numberCells(...texts: readonly (string | number)[]): readonly Html[] {
  return texts.map((text) => markup`<td class="n">${text}</td>`);
}
