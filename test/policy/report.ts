/** Collecting what reading a value reports. */
import type { Kind, Report } from '../../src/policy/settings/setting.ts';

/** For values that must be sound. */
export const never: Report = (message, path = []) => {
  throw new Error(`${path.join('.')}: ${message}`);
};

/** Reads a value of TOML and gives it, or what was reported as one text. */
export function read<T>(kind: Kind<T>, value: unknown): unknown {
  const reports: string[] = [];
  const result = kind.read(value, (message, path = []) => reports.push(`${path.join('.')}: ${message}`));
  if ((result === undefined) !== reports.length > 0)
    throw new Error('a value, or a report: never both or neither');
  return result ?? reports.join('; ');
}

/** Reads the text of a variable or flag and gives the value, or what was reported as one text. */
export function readText<T>(kind: Kind<T>, given: string): unknown {
  const reports: string[] = [];
  const raw = kind.fromText(given, (message) => reports.push(`: ${message}`));
  return reports.length > 0 ? reports.join('; ') : read(kind, raw);
}
