/** TOML files that a flag names. */
import { parseToml, TomlError } from '../../src/policy/configuration/toml.ts';
import { UsageError } from './subcommand.ts';

/** @throws UsageError with file and line */
export function tomlOf(text: string, file: string): Readonly<Record<string, unknown>> {
  try {
    return parseToml(text);
  } catch (error) {
    if (error instanceof TomlError) throw new UsageError(`${file}:${error.where}: ${error.message}`);
    throw error;
  }
}
