/** Sizes in bytes as Kubernetes writes them, with binary units only: `64Mi`, `512Ki`, `2Gi`, or a plain number. */

const units = [
  { name: 'Gi', bytes: 1_073_741_824 },
  { name: 'Mi', bytes: 1_048_576 },
  { name: 'Ki', bytes: 1_024 },
  { name: '', bytes: 1 },
] as const;

/**
 * Reads a size.
 * @param text such as `64Mi`
 * @returns bytes, or undefined if the text is no size or not a safe integer
 */
export function parseBytes(text: string): number | undefined {
  const match = /^(\d+)(Gi|Mi|Ki|)$/.exec(text);
  if (!match) return undefined;
  const unit = units.find(({ name }) => name === match[2]);
  const bytes = Number(match[1]) * (unit?.bytes ?? 1);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/**
 * Writes a size with the largest unit that divides it, so that `parseBytes` reads the same number back.
 * @param bytes a whole number, not negative
 */
export function formatBytes(bytes: number): string {
  const unit = units.find((unit) => bytes > 0 && bytes % unit.bytes === 0);
  return `${bytes / (unit?.bytes ?? 1)}${unit?.name ?? ''}`;
}
