/** TOML files that a flag names: settings at the top, and a list of tables. */
import * as v from 'valibot';
import { readShape } from '../../src/http/json.ts';
import { unknownArchitecture } from '../../src/names/architecture.ts';
import { parseToml, TomlError } from '../../src/policy/configuration/toml.ts';
import { UsageError } from './exit.ts';

/** @returns `lineOf`: the line of a table by list and index @throws UsageError with file and line */
export function readTomlFile<const S extends v.BaseSchema<unknown, unknown, v.BaseIssue<unknown>>>(
  text: string,
  file: string,
  schema: S,
): { readonly value: v.InferOutput<S>; readonly lineOf: (list: string, index: number) => number } {
  try {
    const document = parseToml(text);
    const lineOf = (list: string, index: number): number => document.lineOf([list, index]);
    const value = readShape(schema, document.value, (where, problem) => {
      const [list = '', index, ...field] = where.split('.');
      if (index === undefined) return new UsageError(`${file}: ${list} ${problem}`);
      const what = field.length === 0 ? problem : `${field.join('.')} ${problem}`;
      return new UsageError(`${file}:${lineOf(list, Number(index))}: ${what}`);
    });
    return { value, lineOf };
  } catch (error) {
    if (error instanceof TomlError) throw new UsageError(`${file}:${error.where}: ${error.message}`);
    throw error;
  }
}

export const architecture = v.pipe(
  v.string(),
  v.check(
    (name) => unknownArchitecture(name) === undefined,
    ({ input }) => `must be an architecture: ${unknownArchitecture(input)}`,
  ),
);
