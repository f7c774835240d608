/** The texts of `--help` and `archwright help`, made from the descriptions of settings and flags. */
import { describeFlags, describeSettings, type DescribedFlag } from './flags.ts';
import type { Invocation, Subcommand } from './subcommand.ts';

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

/** @param settings whether settings, which are flags too, are described or only named */
export function subcommandHelp(
  name: string,
  subcommand: Subcommand,
  settings: 'described' | 'named' = 'named',
): string {
  const known = describeSettings(subcommand);
  const described = ['Settings (flags override the environment and the file):', ...known.flatMap(flagLines)];
  const named = [
    `Settings, which are flags too (\`archwright help ${name}\` describes them):`,
    ...wrap(known.flatMap(({ words }) => words.slice(0, 1)).join(' '), 2),
  ];
  return [
    `Usage: archwright ${name} ${subcommand.usage}`,
    '',
    ...wrap(subcommand.description, 0),
    '',
    'Flags:',
    ...describeFlags(subcommand).flatMap(flagLines),
    ...(known.length === 0 ? [] : ['', ...(settings === 'named' ? named : described)]),
    '',
  ].join('\n');
}

function flagLines({ title, help }: DescribedFlag): readonly string[] {
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
