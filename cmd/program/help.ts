/** The texts of `--help` and `archwright help`, made from the descriptions of settings and flags. */
import { formatToml } from '../../src/policy/configuration/toml.ts';
import { flagName, written, type Setting } from '../../src/policy/settings/setting.ts';
import { settingsOf } from './flags.ts';
import type { Invocation, OwnFlag, Subcommand } from './subcommand.ts';

/** Maximum line width. */
const width = 100;
const indent = 6;

export function programHelp(subcommands: Invocation['subcommands']): string {
  const widest = Math.max(...Object.keys(subcommands).map(({ length }) => length));
  return [
    'Usage: archwright SUBCOMMAND [FLAGS]',
    '',
    'Places every pod on a node whose CPU architecture can run all of its images.',
    '',
    ...Object.entries(subcommands).map(([name, { summary }]) => `  ${name.padEnd(widest)}  ${summary}`),
    '',
    'See `archwright SUBCOMMAND --help`, `archwright help SUBCOMMAND` with all settings, and `archwright --version`.',
    '',
  ].join('\n');
}

/**
 * The help of a subcommand.
 * @param settings whether settings, which are flags too, are described or only named
 */
export function subcommandHelp(
  name: string,
  subcommand: Subcommand,
  settings: 'described' | 'named' = 'named',
): string {
  const own = Object.entries(subcommand.flags).map(([flag, description]) => ownFlag(flag, description));
  const known = Object.entries(settingsOf(subcommand));
  const described = [
    'Settings (flags override the environment and the file):',
    ...known.flatMap((each) => settingFlag(...each)),
  ];
  const named = [
    `Settings, which are flags too (\`archwright help ${name}\` describes them):`,
    ...wrap(known.map(([key]) => `--${flagName(key)}`).join(' '), 2),
  ];
  return [
    `Usage: archwright ${name} ${subcommand.usage}`,
    '',
    ...wrap(subcommand.description, 0),
    '',
    'Flags:',
    ...own.flat(),
    ...(subcommand.settings === 'none' ? [] : flagLines('--config FILE', 'The configuration, in TOML.')),
    ...flagLines('-h, --help', 'Prints this text.'),
    ...(known.length === 0 ? [] : ['', ...(settings === 'named' ? named : described)]),
    '',
  ].join('\n');
}

function ownFlag(name: string, { short, value, help }: OwnFlag): string[] {
  const title = `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`;
  return flagLines(title, help);
}

function settingFlag(key: string, setting: Setting<unknown>): string[] {
  const { kind, help, shortFlag } = setting;
  const name = flagName(key);
  const names = [`--${name}`, ...(shortFlag === undefined ? [] : [`--${shortFlag}`])].join(', ');
  const title = kind.isSwitch ? `--${name}, --no-${name}` : `${names} ${kind.placeholder}`;
  const preset = written(setting, setting.default);
  const isEmpty = preset === undefined || (typeof preset === 'object' && Object.keys(preset).length === 0);
  return flagLines(title, isEmpty ? help : `${help} Default: ${formatToml(preset)}.`);
}

function flagLines(title: string, help: string): string[] {
  return [`  ${title}`, ...wrap(help, indent)];
}

function wrap(text: string, indent: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.replaceAll('`', '').split(' ')) {
    if (line !== '' && indent + line.length + 1 + word.length > width) {
      lines.push(' '.repeat(indent) + line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, ' '.repeat(indent) + line];
}
