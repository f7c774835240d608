/** Durations in settings: whole numbers with units, largest first: `7d`, `1h30m`, `500ms`. */

const units = [
  { name: 'd', ms: 86_400_000 },
  { name: 'h', ms: 3_600_000 },
  { name: 'm', ms: 60_000 },
  { name: 's', ms: 1_000 },
  { name: 'ms', ms: 1 },
] as const;

/** Each unit at most once, in falling order. Unlike in Go: `d`, no signs, no fractions. */
const pattern = /^(?:(\d{1,12})d)?(?:(\d{1,12})h)?(?:(\d{1,12})m(?!s))?(?:(\d{1,12})s)?(?:(\d{1,12})ms)?$/;

/** Ten years: longer than any setting needs, and exact in milliseconds. */
const maxMs = 3_650 * 86_400_000;

/** Milliseconds, or undefined if the text is no duration or is longer than ten years. */
export function parseDuration(text: string): number | undefined {
  const match = text === '' ? null : pattern.exec(text);
  if (!match) return undefined;
  const ms = units.reduce((sum, unit, index) => sum + Number(match[index + 1] ?? 0) * unit.ms, 0);
  return ms <= maxMs ? ms : undefined;
}

export function formatDuration(ms: number): string {
  let rest = ms;
  let text = '';
  for (const unit of units) {
    const amount = Math.floor(rest / unit.ms);
    if (amount > 0) text += `${amount}${unit.name}`;
    rest -= amount * unit.ms;
  }
  return text === '' ? '0s' : text;
}
