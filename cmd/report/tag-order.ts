/** Which tags of a repository are newer than another, of the same variant. */

interface Version {
  readonly numbers: readonly number[];
  /** Must be equal: prefix, which numbers are dates, and the rest without its versions: `v#.# -alpine#`. */
  readonly variant: string;
}

const form = /^(v?)(\d{1,9}(?:\.\d{1,9}){0,3})((?:[-_.][A-Za-z][\w.-]{0,60})?)$/;
/** `2024`, `202409`, `20240923`: higher than any version, and no newer one. */
const date = /^20\d\d(?:[01]\d(?:[0-3]\d)?)?$/;
const prerelease = /[-_.](?:alpha|beta|rc|pre|preview|dev|snapshot|nightly|canary|test)(?![a-z])/i;

/** Each costs a lookup. */
const maxTags = 3;

/**
 * Tags to look at for a newer one, the smallest step first: the newest with the same minor version, the
 * newest with the same major version, and the newest. If these are the same, the next newest ones follow: the
 * newest may lack what an older one has. Pre-releases count as no version.
 * @see https://semver.org
 */
export function newerTags(tag: string, tags: readonly string[]): readonly string[] {
  const own = versionOf(tag);
  if (own === undefined) return [];
  const newer = tags
    .flatMap((name) => {
      const version = versionOf(name);
      return version?.variant === own.variant && compare(version, own) > 0 ? [{ name, version }] : [];
    })
    .toSorted((a, b) => compare(b.version, a.version) || (a.name < b.name ? 1 : -1));
  const newestWith = (same: number): string | undefined =>
    newer.find(({ version }) =>
      version.numbers.slice(0, same).every((each, index) => each === own.numbers[index]),
    )?.name;
  const found = [newestWith(2), newestWith(1), newestWith(0)].filter((name) => name !== undefined);
  return [...new Set([...found, ...newer.map(({ name }) => name)])].slice(0, maxTags);
}

function versionOf(tag: string): Version | undefined {
  const [, prefix, numbers, rest] = form.exec(tag) ?? [];
  if (numbers === undefined || rest === undefined || prerelease.test(rest)) return undefined;
  const parts = numbers.split('.');
  const kinds = parts.map((part) => (date.test(part) ? 'date' : '#')).join('.');
  const variant = `${prefix}${kinds} ${rest.replaceAll(/\d+(?:\.\d+)*/g, '#')}`;
  return { numbers: parts.map(Number), variant };
}

function compare(a: Version, b: Version): number {
  const index = a.numbers.findIndex((each, at) => each !== b.numbers[at]);
  return index < 0 ? 0 : (a.numbers[index] ?? 0) - (b.numbers[index] ?? 0);
}
