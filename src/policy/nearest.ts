/** The nearest known word to one that is unknown, for messages that help with a typing mistake. */

/**
 * Finds the candidate that takes the fewest insertions, deletions, replacements and swaps of neighbors.
 * @param word what was written; upper and lower case count as equal
 * @param candidates what could have been meant
 * @returns undefined where nothing is near enough to be a likely mistake
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  // Farther than a third of the word, it is more likely another word than a mistake in this one.
  let best = Math.max(1, Math.floor(word.length / 3)) + 1;
  let found: string | undefined;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= best) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

/** `; did you mean x?`, or nothing; made to be appended to a message. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const found = nearest(word, candidates);
  return found === undefined ? '' : `; did you mean ${found}?`;
}

/** Optimal string alignment distance. */
function editDistance(a: string, b: string): number {
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
  return last[b.length] ?? 0;
}
