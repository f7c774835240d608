/** Reads values and collects the reported problems. */
import type { Kind, Report } from '../../src/policy/settings/setting.ts';

/** For values that must be valid. */
export const never: Report = (message, path = []) => {
  throw new Error(`${path.join('.')}: ${message}`);
};

/** Reads a TOML value. Returns it, or all problems as one text. */
export function read<T>(kind: Kind<T>, value: unknown): unknown {
  const reports: string[] = [];
  const result = kind.read(value, (message, path = []) => reports.push(`${path.join('.')}: ${message}`));
  if ((result === undefined) !== reports.length > 0) throw new Error('expected either a value or a problem');
  return result ?? reports.join('; ');
}

/** Reads the text of a variable or flag. Returns the value, or all problems as one text. */
export function readText<T>(kind: Kind<T>, given: string): unknown {
  const reports: string[] = [];
  const raw = kind.fromText(given, (message) => reports.push(`: ${message}`));
  return reports.length > 0 ? reports.join('; ') : read(kind, raw);
}
