/** Suggests a known word for an unknown one, for messages about typing mistakes. */
import { distance } from 'fastest-levenshtein';

/** A shorter word is the beginning of too many others. */
const minBeginning = 3;

/** No known word is as long. The time grows with the length, and a file may have many unknown words. */
const maxLength = 128;

/**
 * Finds the candidate with the fewest insertions, deletions and replacements; else one that begins nearly
 * like the word.
 * @param word upper and lower case count as equal
 * @returns undefined if no candidate is near enough
 */
export function suggestionFor(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > maxLength) return undefined;
  const known = [...candidates];
  const whole = similarTo(word, known);
  if (whole !== undefined || word.length < minBeginning) return whole;
  const { length } = word;
  return closest(word, known, Math.floor(length / 4), (a, b) =>
    Math.min(...[length - 1, length, length + 1].map((end) => distance(a, b.slice(0, end)))),
  );
}

/** The candidate a few letters away. */
export function similarTo(word: string, candidates: readonly string[]): string | undefined {
  // A swap of two letters is two mistakes. Two in a word of three letters, or more than a third of a longer
  // word, are probably another word.
  const limit = word.length < 4 ? 1 : Math.max(2, Math.floor(word.length / 3));
  // Letters are swapped more often than left out: of two that are equally near, one as long as the word wins.
  return closest(word, candidates, limit, (a, b) => distance(a, b) + (a.length === b.length ? 0 : 0.5));
}

function closest(
  word: string,
  candidates: readonly string[],
  limit: number,
  distanceOf: (word: string, candidate: string) => number,
): string | undefined {
  let best = limit + 1;
  let found: string | undefined;
  for (const candidate of candidates) {
    const mistakes = distanceOf(word.toLowerCase(), candidate.toLowerCase());
    if (mistakes < best) {
      best = mistakes;
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
