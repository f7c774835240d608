/**
 * Texts for people. Image names, labels and registry messages are untrusted: control characters are replaced,
 * and the length is bounded.
 */

/** The API server cuts a warning at 256 (`k8s.io/apiserver` admission webhook, RFC 9110 warning headers). */
export const maxWarningBytes = 256;

/** More would push the important ones off the screen. */
export const maxWarnings = 8;

/** Room for one image in a text that names several. */
export const maxImageBytes = 120;

const plainAscii = /^[\x20-\x7e]*$/u;
const unprintable = /[\p{C}\p{Zl}\p{Zp}]/gu;

/**
 * Makes a text printable: control, format and unassigned characters become `?`, and it is cut at a whole
 * character.
 * @param maxBytes upper bound of the result in bytes of UTF-8, including the mark of the cut
 */
export function printable(text: string, maxBytes: number): string {
  if (text.length <= maxBytes && plainAscii.test(text)) return text;
  // A code unit has at least one byte, so the rest could not be shown.
  const clean = text.slice(0, maxBytes + 1).replace(unprintable, '?');
  if (text.length <= maxBytes + 1 && Buffer.byteLength(clean) <= maxBytes) return clean;
  let kept = '';
  let bytes = 0;
  for (const character of clean) {
    bytes += Buffer.byteLength(character);
    if (bytes > maxBytes - 3) break;
    kept += character;
  }
  return `${kept}...`;
}

/** @param warnings in order of importance */
export function boundedWarnings(warnings: readonly string[]): readonly string[] {
  const shown = warnings.length > maxWarnings ? warnings.slice(0, maxWarnings - 1) : warnings;
  const bounded = shown.map((warning) => printable(warning, maxWarningBytes));
  if (shown.length < warnings.length)
    bounded.push(`archwright: ${warnings.length - shown.length} more warnings`);
  return bounded;
}

/** Joins descriptions, as many as fit. @param maxBytes without the note on the rest (24 bytes) */
export function listed<Item>(
  items: readonly Item[],
  describe: (item: Item) => string,
  maxBytes: number,
): string {
  let text = '';
  let bytes = 0;
  for (const [index, item] of items.entries()) {
    const next = `${index === 0 ? '' : '; '}${describe(item)}`;
    bytes += Buffer.byteLength(next);
    if (bytes > maxBytes) return `${text}${index === 0 ? '' : '; '}and ${items.length - index} more`;
    text += next;
  }
  return text;
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
