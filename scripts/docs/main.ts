/**
 * The reference pages, and the files of the chart, that are made from the program: `npm run docs` writes them, `npm run docs:check` fails
 * where one is not what it would write.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { alerts, alertsFile, runbookIndex, runbookPage } from './chart/alerts.ts';
import { dashboardFile } from './chart/dashboard.ts';
import { namesFile, schemaFile } from './chart/chart.ts';
import { chartReadme } from './chart/readme.ts';
import { settingsFile } from './chart/settings.ts';
import { valuesFile } from './chart/values-file.ts';
import { commandLinePage } from './command-line.ts';
import { settingsPage } from './settings.ts';
import { metricsPage } from './metrics.ts';
import { placementPage } from './placement.ts';

/** The first line of each file, for who is about to edit it; JSON has no comments. */
const notices: Readonly<Record<string, string>> = {
  md: '<!-- Made by `npm run docs`; edit what it is made from instead. -->\n\n',
  yaml: '# Made by `npm run docs`; edit what it is made from instead.\n',
};

/** Every page by its path from the root of the repository. */
export const pages: Readonly<Record<string, () => string | Promise<string>>> = {
  'charts/archwright/README.md': chartReadme,
  'charts/archwright/files/alerts.json': alertsFile,
  'charts/archwright/files/dashboard.json': dashboardFile,
  'charts/archwright/files/settings.json': settingsFile,
  'charts/archwright/files/values.json': namesFile,
  'charts/archwright/values.schema.json': schemaFile,
  'charts/archwright/values.yaml': valuesFile,
  'docs/reference/command-line.md': commandLinePage,
  'docs/reference/settings.md': settingsPage,
  'docs/reference/metrics.md': metricsPage,
  'docs/use/placement.md': placementPage,
  'docs/operate/runbooks/README.md': runbookIndex,
  ...Object.fromEntries(alerts.map((alert) => [`docs/operate/runbooks/${alert.name}.md`, () => runbookPage(alert)])),
};

/**
 * Compares the pages with what they should be, or writes them.
 * @param root directory that the paths start from
 * @returns a line for each page that differs or was written
 */
export async function run(root: URL, mode: 'write' | 'check'): Promise<string[]> {
  const lines: string[] = [];
  for (const [path, make] of Object.entries(pages)) {
    const file = new URL(path, root);
    const expected = (notices[path.split('.').at(-1) ?? ''] ?? '') + (await make());
    const found = await readFile(file, 'utf8').catch(() => undefined);
    if (found === expected) continue;
    if (mode === 'write') {
      await mkdir(new URL('.//', file), { recursive: true });
      await writeFile(file, expected);
    }
    lines.push(mode === 'write' ? `${path} written` : `${path}: ${firstDifference(found, expected)}`);
  }
  return lines;
}

function firstDifference(found: string | undefined, expected: string): string {
  if (found === undefined) return 'is missing';
  const before = found.split('\n');
  const after = expected.split('\n');
  const index = after.findIndex((line, at) => line !== before[at]);
  const at = index < 0 ? after.length : index;
  return `line ${at + 1} is ${JSON.stringify(before[at] ?? '')}, should be ${JSON.stringify(after[at] ?? '')}`;
}

if (import.meta.main) {
  const mode = process.argv.includes('--check') ? 'check' : 'write';
  const lines = await run(new URL('../../', import.meta.url), mode);
  for (const line of lines) process.stdout.write(`${line}\n`);
  if (mode === 'check' && lines.length > 0) {
    process.stdout.write('run `npm run docs` and commit what it writes\n');
    process.exitCode = 1;
  }
}
