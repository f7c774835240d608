/** `archwright config convert`: the configuration of another program becomes ours. */
import { stringify } from 'yaml';
import { formatKey, formatToml, parseToml, TomlError } from '../../src/policy/configuration/toml.ts';
import type { TomlValue } from '../../src/policy/settings/setting.ts';
import { isRecord } from '../../src/names/values.ts';
import type { JsonObject } from '../../src/http/json.ts';
import { parseObjects, readText } from '../objects/documents.ts';
import { exitCodes, UsageError, type Invocation } from '../program/subcommand.ts';
import { metadataValues, type Converted, type Origin } from './conversion.ts';
import { noe } from './noe.ts';
import { archawareController, multiarchTuningOperator, tolerable } from './other-programs.ts';

/** Those with the clearest marks first. */
const origins: readonly Origin[] = [multiarchTuningOperator, archawareController, tolerable, noe];

const outputs = ['values', 'toml', 'resources'] as const;
type Output = (typeof outputs)[number];

/** Not settings of `archwright.toml`. */
const chartOnly: ReadonlySet<string> = new Set(metadataValues);

/**
 * Converts files, or standard input for `-`.
 * @param output `undefined`: values where there are any, else custom resources
 * @returns the exit code: 0, or 1 where a document is of no program that is known
 * @throws UsageError for a file that cannot be read
 */
export async function convert(
  files: readonly string[],
  output: string | undefined,
  io: Invocation['io'],
): Promise<number> {
  const wanted = outputs.find((known) => known === output);
  if (output !== undefined && wanted === undefined) {
    throw new UsageError(`convert takes --output ${outputs.join(', ')}, not ${output}`);
  }
  if (files.length === 0) throw new UsageError('name the files to convert, or - for standard input');
  const found: Converted[] = [];
  let unknown = 0;
  for (const file of files) {
    for (const document of await documentsOf(file, io)) {
      const origin = origins.find((each) => each.recognizes(document));
      if (origin === undefined) {
        // Manifests come with Services and roles, which say nothing of how the program is configured.
        if (typeof document['kind'] === 'string') continue;
        io.err(`${file}: this is not a configuration of ${origins.map(({ name }) => name).join(', ')}\n`);
        unknown++;
        continue;
      }
      const converted = origin.convert(document);
      found.push(converted);
      io.err(
        `${file}: from ${origin.name}\n${converted.notes.map(({ key, text }) => `  ${key} ${text}\n`).join('')}`,
      );
    }
  }
  if (found.length === 0) {
    if (unknown === 0) io.err('archwright: the input has nothing to convert\n');
    return exitCodes.failure;
  }
  io.out(write(found, wanted, io));
  return unknown === 0 ? exitCodes.success : exitCodes.failure;
}

async function documentsOf(file: string, io: Invocation['io']): Promise<readonly JsonObject[]> {
  try {
    const named = await readText(file, io.stdin);
    const isToml = file.endsWith('.toml') || (file === '-' && /^\s*\w+\s*=/m.test(named.text));
    if (isToml) return [parseToml(named.text)];
    return parseObjects(named)
      .map(({ value }) => value)
      .filter(isRecord);
  } catch (error) {
    throw error instanceof TomlError ? new UsageError(`${file}: ${error.message}`) : error;
  }
}

function write(found: readonly Converted[], wanted: Output | undefined, io: Invocation['io']): string {
  const values = Object.fromEntries(found.flatMap((each) => Object.entries(each.values)));
  const resources = found.flatMap((each) => each.resources);
  const hasValues = Object.keys(values).length > 0;
  const output = wanted ?? (hasValues ? 'values' : 'resources');
  if (output === 'resources') return resources.map((resource) => `---\n${asYaml(resource)}`).join('');
  if (resources.length > 0 && wanted === undefined) {
    io.err(`archwright: ${resources.length} custom resources are printed by --output resources\n`);
  }
  if (!hasValues) return '';
  return output === 'toml' ? asToml(values, io) : asYaml(values);
}

function asYaml(value: unknown): string {
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 });
}

/** Tables of the file are written on one line each, which TOML allows for any value. */
function asToml(values: Converted['values'], io: Invocation['io']): string {
  const lines = Object.entries(values).map(([key, value]) => {
    if (!chartOnly.has(key)) return `${formatKey(key)} = ${formatToml(value as TomlValue)}\n`;
    io.err(`archwright: ${key} is a value of the chart and is left out of TOML\n`);
    return '';
  });
  return lines.join('');
}
