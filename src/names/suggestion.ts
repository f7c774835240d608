/** Suggests a known word for an unknown one, for messages about typing mistakes. */

/** A shorter word is the beginning of too many others. */
const minBeginning = 3;

/** No known word is as long. The time grows with the length, and a file may have many unknown words. */
const maxLength = 128;

/**
 * Finds the candidate with the fewest insertions, deletions, replacements and swaps of neighbors; else one
 * that begins nearly like the word.
 * @param word upper and lower case count as equal
 * @returns undefined if no candidate is near enough
 */
export function suggestionFor(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > maxLength) return undefined;
  const known = [...candidates];
  const whole = similarTo(word, known);
  if (whole !== undefined || word.length < minBeginning) return whole;
  return closest(word, known, Math.floor(word.length / 5), (row) => Math.min(...row));
}

/** The candidate a few letters away, as in the chart (charts/archwright/templates/_unknown.tpl). */
export function similarTo(word: string, candidates: readonly string[]): string | undefined {
  // Farther than a third of the word, it is more likely another word than a mistake in this one.
  return closest(word, candidates, Math.max(1, Math.floor(word.length / 3)), (row) => row.at(-1) ?? 0);
}

function closest(
  word: string,
  candidates: readonly string[],
  limit: number,
  score: (row: readonly number[]) => number,
): string | undefined {
  let best = limit + 1;
  let found: string | undefined;
  for (const candidate of candidates) {
    const distance = score(distances(word.toLowerCase(), candidate.toLowerCase()));
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

/** `; did you mean x?`, or nothing; made to be appended to a message. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const found = suggestionFor(word, candidates);
  return found === undefined ? '' : `; did you mean ${found}?`;
}

/** Optimal string alignment distances from `a` to each prefix of `b`, the last being all of it. */
function distances(a: string, b: string): number[] {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current[column] = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (beforeLast[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    beforeLast = last;
    last = current;
  }
  return last;
}
