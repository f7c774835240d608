/** `archwright config`: checks or prints a configuration. */
import {
  loadConfiguration,
  type Configuration,
  type LoadedConfiguration,
  type Origins,
} from '../src/policy/configuration/configuration.ts';
import { inconsistencies } from '../src/policy/configuration/consistency.ts';
import { ConfigurationError, describeProblem } from '../src/policy/configuration/problem.ts';
import { written, type Settings } from '../src/policy/settings/setting.ts';
import { settings } from '../src/policy/settings/all.ts';
import { formatToml } from '../src/policy/configuration/toml.ts';
import { unknownArchitecture } from '../src/names/architecture.ts';
import { didYouMean } from '../src/names/suggestion.ts';
import { readStandardInput, standardInput } from './objects/documents.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import { choice } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { jsonText } from './program/table.ts';

const actions = ['check', 'print'] as const;

const flags = {
  output: choice(['toml', 'json'], 'Output format of `print`.', { short: 'o' }),
};

type Call = Invocation<typeof flags>;
type ValidConfiguration = Extract<LoadedConfiguration, { problems: readonly [] }>;

export const subcommand: Subcommand<typeof flags> = {
  usage: 'check [FLAGS] [FILE] | print [FLAGS] [FILE]',
  description:
    '`check` lists all errors of a configuration file, including the environment and flags; the exit ' +
    'code is 1 if there are any. `print` shows every setting and its source, as a configuration file. ' +
    'With `-`, both read standard input.',
  settings: 'all',
  flags,
  run,
};

async function run(invocation: Call): Promise<number> {
  const [action, file, ...more] = invocation.positionals;
  const sources = sourcesOf(invocation, file ?? invocation.sources.file);
  if (more.length > 0) throw new UsageError(`takes one file, but also got ${more.join(', ')}`);
  if (action === 'print') return print(invocation, sources);
  if (action === 'check') {
    if (invocation.given.has('output')) throw new UsageError('--output belongs to print');
    return check(invocation, sources);
  }
  if (action === undefined) throw new UsageError(`name what to do: ${actions.join(', ')}`);
  throw new UsageError(`unknown action ${action}${didYouMean(action, actions)}`);
}

/** `-` stands for standard input. */
function sourcesOf({ sources, io }: Invocation, file: string | undefined): Invocation['sources'] {
  if (file !== '-') return { ...sources, file };
  return { ...sources, file: standardInput, read: (maxBytes) => readStandardInput(io.stdin, maxBytes) };
}

async function check({ io }: Invocation, sources: Invocation['sources']): Promise<number> {
  const loaded = await loadConfiguration(sources);
  for (const problem of loaded.problems) io.err(`${describeProblem(problem)}\n`);
  if (!loaded.configuration) return exitCodes.failure;
  const refused = refusals(loaded);
  for (const problem of refused) io.err(`${problem}\n`);
  if (refused.length > 0) return exitCodes.failure;
  for (const mistake of unknownArchitectures(loaded.configuration)) io.err(`warning: ${mistake}\n`);
  const set = Object.values(loaded.origins).filter(({ kind }) => kind !== 'default').length;
  io.out(
    `${sources.file ?? 'configuration'}: valid, ${set} of ${Object.keys(settings).length} settings set\n`,
  );
  return exitCodes.success;
}

/** Any label value may be an architecture, but one without published kubelets is probably a mistake. */
function unknownArchitectures(configuration: Configuration): readonly string[] {
  const { schedulableArchitectures, preferredArchitecture, preferredWeights, fallbackArchitecture } =
    configuration;
  const named = {
    schedulableArchitectures,
    preferredArchitecture: [preferredArchitecture],
    preferredWeights: Object.keys(preferredWeights),
    fallbackArchitecture: [fallbackArchitecture],
  };
  return Object.entries(named).flatMap(([setting, names]) =>
    names.flatMap((name) => {
      const mistake = name === undefined ? undefined : unknownArchitecture(name);
      return mistake === undefined ? [] : [`${setting}: ${mistake}`];
    }),
  );
}

const services = ['webhook', 'agent', 'controller'] as const;

/** Problems that keep only some services from starting. */
function refusals({ configuration, origins }: ValidConfiguration): readonly string[] {
  const found = services.flatMap((service) =>
    inconsistencies(configuration, service).map(({ key, message }) => ({
      service,
      text: describeProblem({ ...origins[key], key, message }),
    })),
  );
  return [...Map.groupBy(found, ({ text }) => text)].map(
    ([text, all]) => `${text}; ${all.map(({ service }) => service).join(' and ')} would not start`,
  );
}

async function print(invocation: Call, sources: Invocation['sources']): Promise<number> {
  const loaded = await loadConfiguration(sources);
  if (!loaded.configuration) throw new ConfigurationError(loaded.problems);
  const lines = describe(loaded.configuration, loaded.origins);
  invocation.io.out(invocation.flags.output === 'json' ? asJson(lines) : asToml(lines));
  return exitCodes.success;
}

/** A line of output: the value as in TOML, undefined if it is not set. */
type Line = ReturnType<typeof describe>[number];

function describe(configuration: Configuration, origins: Origins) {
  const values: Readonly<Record<string, unknown>> = configuration;
  const places: Readonly<Record<string, Origins[keyof Origins]>> = origins;
  return Object.entries(settings as Settings).map(([key, setting]) => {
    const place = places[key];
    return {
      key,
      value: written(setting, values[key]),
      origin: place === undefined || place.kind === 'default' ? 'default' : `${place.kind} ${place.where}`,
    };
  });
}

function asToml(lines: readonly Line[]): string {
  return lines
    .map(({ key, value, origin }) =>
      value === undefined ? `# ${key} is not set\n` : `${key} = ${formatToml(value)} # ${origin}\n`,
    )
    .join('');
}

function asJson(lines: readonly Line[]): string {
  const entries = lines.map(({ key, value = null, origin }) => [key, { value, origin }]);
  return jsonText(Object.fromEntries(entries));
}
