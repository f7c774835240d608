/** The output of the demo. Colors only on a terminal without `NO_COLOR`. */
import { styleText } from 'node:util';
import { table } from '../../cmd/program/table.ts';
import { columns, type RegistryCount } from './count.ts';

export type Style = Parameters<typeof styleText>[0];

export function style(format: Style, text: string): string {
  // `styleText` looks at the stream and at NO_COLOR itself.
  return styleText(format, text, { stream: process.stdout });
}

export function print(text = ''): void {
  process.stdout.write(`${text}\n`);
}

export function heading(text: string): void {
  print(`\n${style('bold', text)}`);
}

export function printCounts(counts: readonly RegistryCount[]): void {
  print(
    table(
      [
        ['registry', ...Object.keys(columns), 'of them refused', 'not found'],
        ...counts.map(({ name, requests, refused, missing }) => [
          name,
          ...[...requests, refused, missing].map(String),
        ]),
      ],
      '  ',
    ).trimEnd(),
  );
}

export function printProblems(file: string, problems: readonly string[]): void {
  for (const problem of problems) print(style('red', `  NOT AS EXPECTED in ${file}: ${problem}`));
}
