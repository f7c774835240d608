/**
 * Names on the pages exist: metrics with labels, settings with defaults, subcommands with flags, scripts,
 * files, tests.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import t from 'tap';
import { vocabularyOf } from '../../cmd/completion.ts';
import { subcommands } from '../../cmd/program/subcommands.ts';
import { chartSections } from '../../scripts/docs/chart/chart.ts';
import { metricGroups } from '../../scripts/docs/metrics.ts';
import { parseDuration } from '../../src/names/duration.ts';
import { settings } from '../../src/policy/settings/all.ts';
import { allPages, pageOf, source, type Page } from './pages.ts';

const metrics = new Map(
  metricGroups.flatMap((group) => group.metrics).map((metric) => [metric.name, metric]),
);
const values = chartSections().flatMap((section) => section.values.map(({ key }) => key));
const vocabulary = await vocabularyOf(subcommands);
const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };

/** Every key, and every table that contains one. */
const keys = new Set(
  [...Object.keys(settings), ...values].flatMap((key) =>
    key.split('.').map((_, index, steps) => steps.slice(0, index + 1).join('.')),
  ),
);

/** Fields of Kubernetes and containerd that only the pages mention. */
const fieldsOfOthers = new Set([
  'cacheType',
  'runAsNonRoot',
  'ignoreDifferences',
  'minAvailable',
  'unhealthyPodEvictionPolicy',
  'imageData',
  'manifestList',
]);

function wrongMetrics({ text }: Page): string[] {
  const wrong: string[] = [];
  for (const [, name = '', , labels = ''] of text.matchAll(/(archwright(?:_[a-z0-9]+)+)(\{([^}]*)\})?/g)) {
    const metric = metrics.get(name) ?? metrics.get(name.replace(/_(?:bucket|sum|count)$/, ''));
    if (metric === undefined) wrong.push(name);
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)[=!]~?"([^"]*)"/g)) {
      const known = metric?.labels?.[label] ?? [];
      // An ellipsis stands for any of them.
      const isKnown = value
        .split('|')
        .every((each) => (each === '…' ? known.length > 0 : known.includes(each)));
      if (!isKnown) wrong.push(`${name} has no ${label}="${value}"`);
    }
  }
  return wrong;
}

/** The key in a span: `taintKey`, `misplacedPods = "evict"`, `architectures.<arch>.requireNodeLabels`. */
function keyIn(span: string): string | undefined {
  const key = /^([a-z][A-Za-z]*(?:\.[A-Za-z<>]+)*)(?:\s*[=:].*)?$/.exec(span)?.[1];
  return key !== undefined && /[A-Z]/.test(key) ? key : undefined;
}

function wrongKeys({ spans }: Page): string[] {
  return spans
    .map(keyIn)
    .filter((key) => key !== undefined)
    .filter((key) => {
      if (keys.has(key)) return false;
      const steps = key.split('.').filter((step) => !step.startsWith('<'));
      return !steps.every((step) => fieldsOfOthers.has(step) || new RegExp(`\\b${step}\\b`).test(source));
    });
}

const units: Readonly<Record<string, string>> = { min: 'm', hour: 'h', hours: 'h', day: 'd', days: 'd' };

/** A value in parentheses after a setting is its default: `maxGateDuration` (5 min). */
function wrongDefaults({ text }: Page): string[] {
  const wrong: string[] = [];
  for (const [all, key = '', amount = '', unit] of text.matchAll(
    /`([A-Za-z.]+)`\s+\((?:default )?`?(\d+)\s?(ms|s|min|hours?|days?)?`?\)/g,
  )) {
    if (!Object.hasOwn(settings, key)) continue;
    const stated = unit === undefined ? Number(amount) : parseDuration(`${amount}${units[unit] ?? unit}`);
    const { default: preset } = settings[key as keyof typeof settings];
    if (stated !== preset) wrong.push(`${all}: the default is ${JSON.stringify(preset)}`);
  }
  return wrong;
}

/** Calls of the program in shell commands, split into words. */
function callsIn({ blocks, spans }: Page): string[][] {
  // Messages of the program can begin with its name too.
  const commands = spans.filter((span) => !source.includes(span));
  const shell = [...blocks.filter(({ language }) => language === 'sh').map(({ text }) => text), ...commands];
  const lines = shell.flatMap((text) => text.replaceAll(/\\\n/g, ' ').split('\n'));
  return lines.flatMap((line) =>
    [
      ...line
        .replace(/(?:^|\s)#.*$/, '')
        .matchAll(/(?:^|[|&;(]\s*|npx |kubectl |-- +|bin\/)archwright ([^|&;)>]+)/g),
    ].map(([, words = '']) => words.trim().split(/\s+/)),
  );
}

function wrongCalls(page: Page): string[] {
  return callsIn(page).flatMap(([name = '', ...words]) => {
    if (name === '--help' || name === '--version' || name === '…') return [];
    const subcommand = vocabulary.find(({ word }) => word === name);
    if (subcommand === undefined) return [`archwright ${name}`];
    const flags = new Set(subcommand.flags.flatMap(({ words }) => words));
    return words
      .filter((word) => /^--[a-z]/.test(word))
      .map((word) => word.replace(/[=`].*$/, ''))
      .filter((word) => !flags.has(word))
      .map((word) => `archwright ${name} ${word}`);
  });
}

function wrongScripts({ text }: Page): string[] {
  return [...text.matchAll(/npm run (?:-s |--silent )?([a-z][a-z0-9:-]*)/g)]
    .map(([, name = '']) => name)
    .filter((name) => !Object.hasOwn(scripts, name));
}

/** `deploy/web` is a kubectl object, not a file. */
const folders =
  /^(?:(?:src|cmd|daemon|test|scripts|bench|docs|examples|charts)\/[\w./-]*|deploy\/(?:[\w-]+\.yaml)?)$/;

function wrongPaths({ spans }: Page): string[] {
  const words = spans.flatMap((span) => span.split(' '));
  return words.filter((word) => folders.test(word) && !existsSync(word));
}

/** Tests are named without their folders, which may move. */
const tests = new Set(globSync('test/**/*.test.ts').map((path) => basename(path)));

function wrongTests({ spans }: Page): string[] {
  return spans.filter((span) => /^[\w-]+\.test\.ts$/.test(span) && !tests.has(span));
}

const checks: Readonly<Record<string, (page: Page) => string[]>> = {
  'metrics and their labels': wrongMetrics,
  'settings, values and fields': wrongKeys,
  defaults: wrongDefaults,
  'subcommands and flags': wrongCalls,
  'npm scripts': wrongScripts,
  'files and folders': wrongPaths,
  tests: wrongTests,
};

for (const [what, wrongIn] of Object.entries(checks)) {
  t.test(`${what} named on the pages exist`, async (t) => {
    t.ok(allPages.length > 40);
    for (const page of allPages) t.strictSame(wrongIn(page), [], page.path);
  });
}

/** Known names are on the pages. */
t.test('the check finds unknown names', async (t) => {
  const cases: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'metrics and their labels': {
      '`archwright_gated_pots`': 'archwright_gated_pots',
      '`archwright_gated_pods{age="old"}`': 'archwright_gated_pods has no age="old"',
      '`archwright_gated_pods{aeg="…"}`': 'archwright_gated_pods has no aeg="…"',
    },
    'settings, values and fields': {
      '`misplacedPots = "evict"`': 'misplacedPots',
      '`architectures.<arch>.requireNodeLabel`': 'architectures.<arch>.requireNodeLabel',
    },
    defaults: {
      '`evictionsPerMinute` (31)': '`evictionsPerMinute` (31): the default is 30',
      '`maxGateDuration` (5 s)': '`maxGateDuration` (5 s): the default is 300000',
    },
    'subcommands and flags': {
      '```sh\narchwright explain --path   # the patch\n```': 'archwright explain --path',
      '`kubectl archwright explian pod/x`': 'archwright explian',
      '```sh\nkubectl exec x -- \\\n  archwright agent --chek\n```': 'archwright agent --chek',
    },
    'npm scripts': { '`npm run demos`': 'demos' },
    'files and folders': {
      '`npx tap test/docs/none.test.ts`': 'test/docs/none.test.ts',
      '`src/kubes/`': 'src/kubes/',
    },
    tests: { '`names.test.ts`, `manes.test.ts`': 'manes.test.ts' },
  };
  for (const [check, texts] of Object.entries(cases))
    for (const [text, found] of Object.entries(texts))
      t.strictSame(checks[check]?.(pageOf('x.md', text)), [found], text);
});
