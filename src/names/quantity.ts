/**
 * Quantities as Kubernetes writes them: `500m`, `2`, `1.5Gi`, `1e3`.
 * @see kubernetes apimachinery pkg/api/resource/quantity.go and suffix.go
 */

/** Decimal and binary suffixes, as factors. */
const factors: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

const form = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)$/;

/**
 * Reads a quantity.
 * @param written a text, or a number in handwritten JSON
 * @returns in units (cores, bytes); `undefined` if it is no quantity
 */
export function parseQuantity(written: unknown): number | undefined {
  const text = typeof written === 'number' ? String(written) : written;
  if (typeof text !== 'string' || text.length > 64) return undefined;
  const [, number, exponent, suffix] = form.exec(text) ?? [];
  if (number === undefined) return undefined;
  // A text with an exponent is parsed as a whole: the product 1 × 10⁻³ would be inexact.
  const value = exponent === undefined ? Number(number) * (factors[suffix ?? ''] ?? 1) : Number(text);
  return Number.isFinite(value) ? value : undefined;
}
