/** Durations as Go reads and prints them (`time.ParseDuration`, `Duration.String`): `1h30m`, `1.5s`, `-100ms`, `0`. */

const unitsInMs: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** 2^63 ns: the largest duration in Go. */
const maxMs = 9_223_372_036_854.775;

const whole = /^[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/;
const part = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g;

/** @returns milliseconds, which may be negative or a fraction; `undefined` if Go returns an error */
export function parseGoDuration(text: string): number | undefined {
  if (/^[-+]?0$/.test(text)) return 0;
  if (!whole.test(text)) return undefined;
  let ms = 0;
  for (const [, amount, unit = ''] of text.matchAll(part))
    ms += Number(amount) * (unitsInMs.get(unit) ?? Number.NaN);
  if (!(ms <= maxMs)) return undefined;
  return text.startsWith('-') ? -ms : ms;
}

/** Go's error for a text that `parseGoDuration` refuses. */
export function goDurationError(text: string): string {
  const quoted = JSON.stringify(text);
  const [, rest = ''] = /^[-+]?(.*)$/s.exec(text) ?? [];
  for (const [, amount, unit = ''] of rest.matchAll(/(\d+\.?\d*|\.\d+|)([^.\d]*)/g)) {
    if (amount === '') break;
    if (unit === '') return `time: missing unit in duration ${quoted}`;
    if (!unitsInMs.has(unit)) return `time: unknown unit ${JSON.stringify(unit)} in duration ${quoted}`;
  }
  return `time: invalid duration ${quoted}`;
}

/** As Go prints it: `-1m0s`, `1h0m0s`, `1.5s`, `100ms`. */
export function formatGoDuration(ms: number): string {
  const sign = ms < 0 ? '-' : '';
  const abs = Math.abs(ms);
  if (abs === 0) return '0s';
  if (abs < 1e-3) return `${sign}${round(abs * 1e6)}ns`;
  if (abs < 1) return `${sign}${round(abs * 1e3)}µs`;
  if (abs < 1000) return `${sign}${round(abs)}ms`;
  const hours = Math.floor(abs / 3_600_000);
  const minutes = Math.floor((abs % 3_600_000) / 60_000);
  const seconds = `${round((abs % 60_000) / 1000)}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

/** To nanoseconds, the resolution of Go. */
function round(value: number): number {
  return Number(value.toFixed(9));
}
