/**
 * Quantities as Kubernetes writes them: `500m`, `2`, `1.5Gi`, `1e3` (kubernetes apimachinery
 * pkg/api/resource/quantity.go and suffix.go). Durations in settings.
 */

const decimal = { n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 };
const binary = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 };
const factors: Readonly<Record<string, number>> = { ...decimal, ...binary };

const form = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)$/;

/** @param written a text, or a number in handwritten JSON @returns units; `undefined` if invalid */
export function parseQuantity(written: unknown): number | undefined {
  const text = typeof written === 'number' ? String(written) : written;
  if (typeof text !== 'string' || text.length > 64) return undefined;
  const [, number, exponent, suffix] = form.exec(text) ?? [];
  if (number === undefined) return undefined;
  // A text with an exponent is parsed as a whole: the product 1 × 10⁻³ would be inexact.
  const value = exponent === undefined ? Number(number) * (factors[suffix ?? ''] ?? 1) : Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** Bytes: `64Mi`, `512Ki`, `2Gi` or a plain number; `undefined` if not a safe integer. */
export function parseBytes(text: string): number | undefined {
  const bytes = /^\d+(?:Gi|Mi|Ki|)$/.test(text) ? parseQuantity(text) : undefined;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** The largest unit that divides the size, so that `parseBytes` reads the same number back. */
export function formatBytes(bytes: number): string {
  const unit = (['Gi', 'Mi', 'Ki'] as const).find((name) => bytes > 0 && bytes % binary[name] === 0);
  return unit === undefined ? `${bytes}` : `${bytes / binary[unit]}${unit}`;
}

/** Durations in settings: whole numbers with units, largest first: `7d`, `1h30m`, `500ms`. */
const units = [
  { name: 'd', ms: 86_400_000 },
  { name: 'h', ms: 3_600_000 },
  { name: 'm', ms: 60_000 },
  { name: 's', ms: 1_000 },
  { name: 'ms', ms: 1 },
] as const;

/** Each unit at most once, in falling order. Unlike in Go: `d`, no signs, no fractions. */
const durations = /^(?:(\d{1,12})d)?(?:(\d{1,12})h)?(?:(\d{1,12})m(?!s))?(?:(\d{1,12})s)?(?:(\d{1,12})ms)?$/;

/** Ten years: longer than any setting needs, and exact in milliseconds. */
const maxMs = 3_650 * 86_400_000;

/** Milliseconds, or undefined if the text is no duration or is longer than ten years. */
export function parseDuration(text: string): number | undefined {
  const match = text === '' ? null : durations.exec(text);
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
