/**
 * All benches in sequence, and a table of budgets and measurements. `npm run bench`; `-- --write` also
 * updates `docs/internals/benchmarks.md`. A missed budget is reported and is not a failure.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import { benchAdmission } from './admission.ts';
import { benchAgent } from './agent.ts';
import { benchBurst } from './burst.ts';
import { benchDecision } from './decision.ts';
import { benchFactsMemory } from './facts-memory.ts';
import { benchFleet } from './fleet.ts';
import { benchHostile } from './hostile.ts';
import { benchInspection } from './inspection.ts';
import { benchReport } from './report.ts';
import { describeMachine } from './support/machine.ts';
import { budgetList, budgetTable, formatSection, type Section } from './support/section.ts';

const page = new URL('../docs/internals/benchmarks.md', import.meta.url);
/** Hand-written text about the numbers; a new measurement keeps it. */
const notes = { begin: '<!-- notes -->', end: '<!-- end of notes -->' };

const benches: readonly (() => Section | Promise<Section>)[] = [
  benchAdmission,
  benchDecision,
  benchInspection,
  benchFleet,
  benchHostile,
  benchFactsMemory,
  benchAgent,
  benchBurst,
  benchReport,
];

const write = process.argv.includes('--write');
const machineBefore = await describeMachine();
const sections: Section[] = [];
for (const bench of benches) {
  const section = await bench();
  sections.push(section);
  process.stdout.write(`${formatSection(section)}\n`);
}
const budgets = budgetTable(sections.flatMap((section) => section.budgets));
process.stdout.write(`## Budgets\n\n${budgets}\n`);
if (write) await writePage();

async function writePage(): Promise<void> {
  const text = [
    '# Benchmarks',
    '`npm run bench` measures what archwright costs and prints every table; with `-- --write` it also writes the budgets here. No test ' +
      'asserts on time.',
    machineBefore,
    '## Budgets',
    budgetList(sections.flatMap((section) => section.budgets)),
    `${notes.begin}${await keptNotes()}${notes.end}`,
  ].join('\n\n');
  const config = await resolveConfig(page);
  await writeFile(page, await format(text, { ...config, parser: 'markdown' }));
  process.stdout.write(`\n${page.pathname} is written\n`);
}

async function keptNotes(): Promise<string> {
  const text = await readFile(page, 'utf8').catch(() => '');
  const from = text.indexOf(notes.begin);
  const to = text.indexOf(notes.end);
  return from === -1 || to === -1 ? '\n\n' : text.slice(from + notes.begin.length, to);
}
