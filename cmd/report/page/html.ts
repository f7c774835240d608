/** HTML templates that escape every value, and the parts that sections share: tables, and bars as SVG. */
import { rounded } from './data.ts';

export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Value = string | number | Html | undefined | readonly Value[];

/** A template. `undefined` becomes nothing, a list becomes its items. */
export function markup(parts: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(parts.reduce((text, part, index) => text + written(values[index - 1]) + part));
}

function written(value: Value): string {
  if (value === undefined) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(written).join('');
  return String(value).replaceAll(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);
}

/** Only `<` can end a `<script>`: HTML, "Restrictions for contents of script elements". */
export function embeddedJson(value: unknown): Html {
  return new Html(JSON.stringify(value).replaceAll('<', '\\u003c'));
}

export function section(id: string, title: string, ...content: readonly Value[]): Html {
  return markup`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>${content}</section>`;
}

/** A table, which scrolls by itself if it is wide, with the keyboard too. @param headingId of the heading that names it */
export function table(headingId: string, heads: readonly (string | Html)[], rows: readonly Html[]): Html {
  return markup`<div class="scroll" role="region" aria-labelledby="${headingId}" tabindex="0"><table>
<thead><tr>${heads.map((head) => (head instanceof Html ? head : markup`<th scope="col">${head}</th>`))}</tr></thead>
<tbody>${rows}</tbody>
</table></div>`;
}

/** The heading of numbers, which are aligned to the right. */
export function numberHead(text: string): Html {
  return markup`<th scope="col" class="n">${text}</th>`;
}

export function numberCells(...texts: readonly (string | number)[]): readonly Html[] {
  return texts.map((text) => markup`<td class="n">${text}</td>`);
}

const width = 1000;
const gap = 3;

/**
 * One bar of segments in a row, as wide as its place. It repeats numbers beside it, so screen readers skip it.
 * @param segments with the classes of their colors, and their parts of the whole bar, between 0 and 1
 */
export function bar(segments: readonly { readonly color: string; readonly part: number }[]): Html {
  let x = 0;
  const shown = segments.filter(({ part }) => part > 0);
  const drawn = shown.map(({ color, part }) => {
    const start = x;
    x += part * width;
    // A gap between neighbors, so that they differ without their colors; the smallest part stays visible.
    const length = Math.max(part * width - gap, 2);
    return markup`<rect class="fill-${color}" x="${rounded(start)}" width="${rounded(length)}" height="16" />`;
  });
  return markup`<svg
    class="bar"
    viewBox="0 0 ${width} 16"
    preserveAspectRatio="none"
    aria-hidden="true"
    focusable="false"
  >
    ${drawn}
  </svg>`;
}

export function swatch(color: string): Html {
  return markup`<svg class="swatch" viewBox="0 0 10 10" aria-hidden="true" focusable="false">
    <rect class="fill-${color}" width="10" height="10" />
  </svg>`;
}
