/**
 * Removes known secrets from texts that leave the process. The cost of a log line does not depend on the
 * number of secrets: they are found by their first characters. One regular expression of all secrets takes
 * 2 s to compile, and pod authors could cause that with each new password.
 */

/** Shorter texts occur in ordinary words. */
const minLength = 6;

/**
 * Words of archwright's own texts. As a password, each is everybody's first guess; its removal from `pull secret`
 * would tell that it is one. Their base64 is removed all the same.
 */
const ownWords: ReadonlySet<string> = new Set(
  (
    'access account address anonymous archwright answer architecture available client cluster config container ' +
    'containers controller credential credentials default deployment docker gateway images kubelet kubernetes ' +
    'letmein library manifest mirror namespace network password plugin private public registry repository request ' +
    'secret secrets server service system timeout unauthorized unavailable username'
  ).split(' '),
);

interface Limits {
  readonly secrets: number;
  /** Memory limit: tokens may have 64 KiB each. */
  readonly characters: number;
}

/** Pod authors and registries choose the number of theirs, so these do not displace ours. */
const limits = {
  ours: { secrets: 2048, characters: 1_048_576 },
  others: { secrets: 1024, characters: 524_288 },
};

export type SecretOwner = keyof typeof limits;

/** Longer secrets are tokens and keys, never in a Basic header: their base64 is not searched. */
const maxBase64Source = 512;

const replacement = '[secret]';

/** Forms by their first characters, with the number of secrets that have each form. */
const byStart = new Map<string, Map<string, number>>();

/**
 * Secrets of letters only, with the number of their owners. They are removed as whole words: `regist` cut out of
 * `registry` would tell that it is a password.
 */
const words = new Map<string, number>();

/** The secrets of one owner. The least recently registered leave first. */
class Remembered {
  readonly #limits: Limits;
  /** Every form of each secret, oldest first. */
  readonly #forms = new Map<string, readonly string[]>();
  #characters = 0;

  constructor(most: Limits) {
    this.#limits = most;
  }

  add(secret: string): void {
    const known = this.#forms.get(secret);
    if (known) {
      this.#forms.delete(secret);
      this.#forms.set(secret, known);
      return;
    }
    const found = forms(secret);
    this.#forms.set(secret, found);
    this.#characters += lengthOf(found);
    for (const form of found) count(secret, form, 1);
    for (const [oldest, itsForms] of this.#forms) {
      if (this.#isWithinLimits()) return;
      this.#forms.delete(oldest);
      this.#characters -= lengthOf(itsForms);
      for (const form of itsForms) count(oldest, form, -1);
    }
  }

  #isWithinLimits(): boolean {
    const { secrets, characters } = this.#limits;
    return this.#forms.size <= secrets && (this.#characters <= characters || this.#forms.size === 1);
  }
}

const remembered = { ours: new Remembered(limits.ours), others: new Remembered(limits.others) };

export function remember(secret: string, owner: SecretOwner): void {
  remembered[owner].add(secret);
}

/** Comparisons of a text with forms. A few hundred are enough, unless many secrets begin alike: 6 ms at most. */
const maxComparisons = 8192;

/**
 * Replaces known secrets by `[secret]`, also escaped as in JSON or a URL, or inside base64. A pod author can
 * choose a thousand passwords with the same beginning, and repeat it in a name: such a text is cut.
 */
export function scrub(text: string): string {
  const clean = withoutForms(text);
  return words.size === 0
    ? clean
    : clean.replace(escapeOrWord, (found) => (words.has(found) ? replacement : found));
}

/** An escape of JSON or of a URL ends in letters that do not belong to the word behind it. */
const escapeOrWord = /\\u[0-9a-f]{4}|\\.|%[0-9a-f]{2}|[a-z]+/gi;

function withoutForms(text: string): string {
  let clean = '';
  let copied = 0;
  /** End of the current secret. Another may begin inside it and end later. */
  let end = 0;
  let comparisons = 0;
  const cutAt = (from: number): string => clean + text.slice(copied, from) + replacement;
  for (let at = 0; at + minLength <= text.length; at++) {
    const group = byStart.get(text.slice(at, at + minLength));
    if (group === undefined) continue;
    comparisons += group.size;
    if (comparisons > maxComparisons) return copied === text.length ? clean : cutAt(Math.max(at, copied));
    const length = longestAt(group, text, at);
    if (length === 0) continue;
    if (at >= end) clean += text.slice(copied, at) + replacement;
    end = Math.max(end, at + length);
    copied = end;
  }
  return clean + text.slice(copied);
}

function longestAt(group: ReadonlyMap<string, number>, text: string, at: number): number {
  let longest = 0;
  for (const form of group.keys()) {
    if (form.length > longest && text.startsWith(form, at)) longest = form.length;
  }
  return longest;
}

function count(secret: string, form: string, change: 1 | -1): void {
  if (form === secret && /^[a-z]+$/i.test(form)) return bump(words, form, change);
  const start = form.slice(0, minLength);
  const group = byStart.get(start) ?? new Map<string, number>();
  bump(group, form, change);
  if (group.size > 0) byStart.set(start, group);
  else byStart.delete(start);
}

function bump(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const sum = (counts.get(key) ?? 0) + change;
  if (sum > 0) counts.set(key, sum);
  else counts.delete(key);
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}

function forms(secret: string): string[] {
  const escaped = JSON.stringify(secret).slice(1, -1);
  const plain = ownWords.has(secret.toLowerCase()) ? [] : [secret, escaped];
  const all = new Set([
    ...plain,
    // A lone surrogate cannot be encoded.
    ...(plain.length > 0 && secret.isWellFormed() ? [encodeURIComponent(secret)] : []),
    ...(secret.length <= maxBase64Source ? base64(secret) : []),
  ]);
  return [...all].filter(({ length }) => length >= minLength);
}

/**
 * The forms of a secret inside base64 of a longer text, such as `user:password`. Three bytes become four
 * characters, so the form depends on the number of bytes before the secret, and its first and last character
 * depend on its neighbors.
 */
function base64(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [0, 1, 2].flatMap((before) => {
    const bits = (before + bytes.length) * 8;
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const inner = text.slice(Math.ceil((before * 8) / 6), Math.floor(bits / 6));
    return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')];
  });
}
