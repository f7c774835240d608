/** HTML from trusted templates and untrusted values: every value is escaped unless it is HTML itself. */

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

/**
 * JSON for a `<script type="application/json">`. Only `<` can end the element or open a comment in it.
 * @see HTML, "Restrictions for contents of script elements"
 */
export function embeddedJson(value: unknown): Html {
  return new Html(JSON.stringify(value).replaceAll('<', '\\u003c'));
}
