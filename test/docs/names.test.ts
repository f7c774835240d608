/**
 * Names on the pages exist: metrics with labels, settings with defaults, subcommands with flags, scripts,
 * files, tests.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { vocabularyOf } from '../../cmd/completion.ts';
import { subcommands } from '../../cmd/program/subcommands.ts';
import { chartSections } from '../../scripts/docs/chart/chart.ts';
import { metricGroups } from '../../scripts/docs/metrics.ts';
import { parseDuration } from '../../src/names/quantity.ts';
import { settings } from '../../src/policy/settings/all.ts';
import type { Settings } from '../../src/policy/settings/setting.ts';
import { allPages, page, source, type Page } from './pages.ts';

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

function wrongCalls(given: Page): string[] {
  return callsIn(given).flatMap(([name = '', ...words]) => {
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
    for (const each of allPages) t.strictSame(wrongIn(each), [], each.path);
  });
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}

interface Definition {
  readonly spec: { readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[] };
}

const schema = JSON.parse(readFileSync('charts/archwright/values.schema.json', 'utf8')) as Schema;
const specs = ['clusterpodplacementconfigs', 'podplacementconfigs'].map((name) => {
  const { spec } = parse(readFileSync(`charts/archwright/files/crds/${name}.yaml`, 'utf8')) as Definition;
  return spec.versions[0]?.schema.openAPIV3Schema.properties?.['spec'];
});

function has(fields: Schema | undefined, key: string): boolean {
  let at = fields;
  for (const step of key.split('.')) at = at?.properties?.[step];
  return at !== undefined;
}

/** Why archwright does not have `key` or `key: value`, if it has not. */
function wrong(span: string): string | undefined {
  const [key = '', value] = span.split(': ');
  const setting = Object.hasOwn(settings, key) ? (settings as Settings)[key] : undefined;
  if (setting === undefined)
    return has(schema, key) || specs.some((spec) => has(spec, key)) ? undefined : `${key} does not exist`;
  const problems: string[] = [];
  if (value !== undefined) setting.kind.read(parse(value), (message) => problems.push(`${key} ${message}`));
  return problems[0];
}

const spansOf = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span);

/** The right column of each table. Labels and flags are not settings. After `none`, the field of a pod may follow. */
const replacements = page('docs/install/migrate.md')
  .text.split('\n')
  .flatMap((line) => {
    const [, theirs, ours = 'none'] = /^\| (.*) \| (.*) \|$/.exec(line) ?? [];
    if (ours.startsWith('none')) return [];
    return [...spansOf(ours), ...(ours.startsWith('same') ? spansOf(theirs) : [])];
  })
  .filter((span) => !span.startsWith('-') && !span.includes('/'));

t.test('every setting that replaces one of another program exists, with its value', async (t) => {
  t.ok(replacements.length > 35, `${replacements.length} names`);
  t.strictSame(replacements.map(wrong).filter(Boolean), []);
});
