/** Globs: `*` stands for any characters but `/`, `**` for any characters. */

/** The checks of settings limit the stars, and so the time that a match takes. */
export function glob(pattern: string): RegExp {
  return new RegExp(`^${sourceOf(pattern)}$`);
}

const compiled = new WeakMap<readonly string[], RegExp>();

/** Whether one of the globs matches. A list is compiled once. */
export function matchesAny(globs: readonly string[], text: string): boolean {
  let found = compiled.get(globs);
  // Without a glob there is nothing to match; `^(?:)$` would match the empty text.
  if (!found) compiled.set(globs, (found = new RegExp(`^(?:${globs.map(sourceOf).join('|') || '$.'})$`)));
  return found.test(text);
}

function sourceOf(pattern: string): string {
  return pattern
    .split(/(\*+)/)
    .map((part) => (part.startsWith('*') ? (part.length > 1 ? '.*' : '[^/]*') : escape(part)))
    .join('');
}

function escape(literal: string): string {
  return literal.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}
