/** Durations of Go, with what Go says of those that are none (`time.ParseDuration`). */
import { parseGoDuration } from '../../kubelet/config/go-duration.ts';

/** @returns milliseconds, or Go's error */
export function goDuration(text: string): number | string {
  return parseGoDuration(text) ?? errorOf(text);
}

function errorOf(text: string): string {
  const quoted = JSON.stringify(text);
  const [, rest = ''] = /^[-+]?(.*)$/s.exec(text) ?? [];
  for (const [, amount, unit = ''] of rest.matchAll(/(\d+\.?\d*|\.\d+|)([^.\d]*)/g)) {
    if (amount === '') break;
    if (unit === '') return `time: missing unit in duration ${quoted}`;
    if (!units.has(unit)) return `time: unknown unit ${JSON.stringify(unit)} in duration ${quoted}`;
  }
  return `time: invalid duration ${quoted}`;
}

const units: ReadonlySet<string> = new Set(['ns', 'us', 'µs', 'μs', 'ms', 's', 'm', 'h']);
