/** `archwright config`: checks or prints a configuration. */
import {
  loadConfiguration,
  type Configuration,
  type Origins,
} from '../src/policy/configuration/configuration.ts';
import { ConfigurationError, describeProblem } from '../src/policy/configuration/layer.ts';
import { written, type Settings } from '../src/policy/settings/setting.ts';
import { settings } from '../src/policy/settings/all.ts';
import { formatToml } from '../src/policy/configuration/toml.ts';
import { unknownArchitecture } from '../src/names/architecture.ts';
import { didYouMean } from '../src/names/suggestion.ts';
import { readStandardInput, standardInput } from './objects/documents.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import { choice } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { print } from './program/table.ts';

const actions = ['check', 'print'] as const;

const flags = {
  output: choice(['toml', 'json'], 'Output format of `print`.', { short: 'o' }),
};

type Call = Invocation<typeof flags>;

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
  const [action = '', file, ...more] = invocation.positionals;
  const sources = sourcesOf(invocation, file ?? invocation.sources.file);
  if (more.length > 0) throw new UsageError(`takes one file, but also got ${more.join(', ')}`);
  if (action === 'print') return printAll(invocation, sources);
  if (action === 'check') {
    if (invocation.given.has('output')) throw new UsageError('--output belongs to print');
    return check(invocation, sources);
  }
  throw new UsageError(`name what to do: ${actions.join(', ')}${didYouMean(action, actions)}`);
}

/** `-` stands for standard input. */
function sourcesOf({ sources, io }: Invocation, file: string | undefined): Invocation['sources'] {
  if (file !== '-') return { ...sources, file };
  let reading: Promise<Uint8Array> | undefined;
  const read = (maxBytes: number) => (reading ??= readStandardInput(io.stdin, maxBytes));
  return { ...sources, file: standardInput, read };
}

const services = ['webhook', 'agent', 'controller'] as const;

/** Lists also what keeps only some services from starting. */
async function check({ io }: Invocation, sources: Invocation['sources']): Promise<number> {
  const loaded = await Promise.all(services.map((part) => loadConfiguration({ ...sources, part })));
  const found = loaded.flatMap(({ problems }, index) =>
    problems.map((problem) => ({ text: describeProblem(problem), service: services[index] })),
  );
  for (const [text, all] of Map.groupBy(found, (each) => each.text)) {
    const some = all.map(({ service }) => service).join(' and ');
    io.err(`${text}${all.length === services.length ? '' : `; ${some} would not start`}\n`);
  }
  const [first] = loaded;
  if (found.length > 0 || !first?.configuration) return exitCodes.failure;
  for (const mistake of unknownArchitectures(first.configuration)) io.err(`warning: ${mistake}\n`);
  const set = Object.values(first.origins).filter(({ kind }) => kind !== 'default').length;
  io.out(
    `${sources.file ?? 'configuration'}: valid, ${set} of ${Object.keys(settings).length} settings set\n`,
  );
  return exitCodes.success;
}

/** Any label value may be an architecture, but one without published kubelets is probably a mistake. */
function unknownArchitectures(configuration: Configuration): readonly string[] {
  const { preferredArchitecture, fallbackArchitecture } = configuration;
  const named = {
    schedulableArchitectures: configuration.schedulableArchitectures,
    preferredArchitecture: preferredArchitecture ?? [],
    preferredWeights: Object.keys(configuration.preferredWeights),
    fallbackArchitecture: fallbackArchitecture ?? [],
  };
  return Object.entries(named).flatMap(([key, names]) =>
    [names].flat().flatMap((name) => {
      const mistake = unknownArchitecture(name);
      return mistake === undefined ? [] : [`${key}: ${mistake}`];
    }),
  );
}

async function printAll(invocation: Call, sources: Invocation['sources']): Promise<number> {
  const loaded = await loadConfiguration(sources);
  if (!loaded.configuration) throw new ConfigurationError(loaded.problems);
  const lines = describe(loaded.configuration, loaded.origins);
  const entries = lines.map(({ key, value = null, origin }) => [key, { value, origin }]);
  print(invocation, Object.fromEntries(entries), asToml(lines));
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
