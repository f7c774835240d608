import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { subcommands } from '../../cmd/program/subcommands.ts';
import { commandLinePage } from '../../scripts/docs/command-line.ts';
import { settingsPage } from '../../scripts/docs/settings.ts';
import { table } from '../../scripts/docs/markdown.ts';
import { metricGroups, metricsPage } from '../../scripts/docs/metrics.ts';
import { pages, run } from '../../scripts/docs/main.ts';
import { flagName, variableName } from '../../src/policy/settings/setting.ts';
import { settings } from '../../src/policy/settings/all.ts';
import { like } from '../support/like.ts';

const metrics = metricGroups.flatMap(({ metrics }) => metrics);

t.test('generated pages are up to date, edited ones are reported', async (t) => {
  const dir = t.testdir();
  const root = pathToFileURL(`${dir}/`);
  t.strictSame(
    await run(root, 'check'),
    Object.keys(pages).map((path) => `${path}: is missing`),
  );
  t.strictSame(
    await run(root, 'write'),
    Object.keys(pages).map((path) => `${path} written`),
  );
  t.strictSame(await run(root, 'check'), []);
  t.strictSame(await run(root, 'write'), []);

  const page = join(dir, 'docs/reference/metrics.md');
  const text = readFileSync(page, 'utf8');
  writeFileSync(page, text.replace('# Metrics', '# Numbers'));
  t.strictSame(await run(root, 'check'), [
    'docs/reference/metrics.md: line 3 is "# Numbers", should be "# Metrics"',
  ]);
  writeFileSync(page, `${text}more\n`);
  like(t, await run(root, 'check'), [/^docs\/reference\/metrics\.md: line \d+ is "more", should be ""$/]);
});

t.test('the pages name every setting and every metric', async (t) => {
  const settingsText = settingsPage();
  const page = metricsPage();
  for (const key of Object.keys(settings))
    t.match(settingsText, new RegExp(`^- \`${key}\`(?:\\\\\\*)? \\(`, 'm'), key);
  t.match(settingsText, `${variableName('preferredArchitecture')}=arm64`);
  for (const { name } of metrics) t.match(page, new RegExp(`^- \`${name}[\`{]`, 'm'), name);
});

t.test('the command line page has every flag that is not a setting once', async (t) => {
  const page = await commandLinePage();
  for (const [name, entry] of Object.entries(subcommands)) {
    const { subcommand } = await entry.load();
    const section = page.split(`\n## archwright ${name}\n`)[1]?.split('\n## ')[0] ?? '';
    const listed = [...section.matchAll(/^- `(?:-\w, )?--([a-z-]+)/gm)].map(([, flag]) => flag);
    t.strictSame(listed, Object.keys(subcommand.flags).map(flagName), name);
    t.ok(section.includes(subcommand.description) || section.includes(': ['), name);
  }
});

t.test('every metric that the program describes is on the page', async (t) => {
  const known = new Set(metrics.map(({ name }) => name));
  const files = globSync('{src,daemon,cmd}/**/*.ts');
  t.ok(files.length > 10);
  for (const file of files) {
    for (const [, name = ''] of readFileSync(file, 'utf8').matchAll(
      /^\s*name: '([a-z]+(?:_[a-z0-9]+)+)',$/gm,
    )) {
      t.ok(known.has(name), `${file}: ${name}`);
    }
  }
});

t.test('metrics follow the naming rules of Prometheus', async (t) => {
  const seen = new Set<string>();
  for (const { name, type, help, labels = {}, buckets } of metrics) {
    t.notOk(seen.has(name), `${name} is described once`);
    seen.add(name);
    t.match(name, /^(?:archwright|process|nodejs)_[a-z0-9_]+$/, name);
    t.equal(name.endsWith('_total'), type === 'counter', `${name}: only counters end in _total`);
    t.notMatch(name, /_(?:ms|milliseconds|kb|mb|count|sum|bucket)(?:_|$)/, `${name}: base units`);
    t.match(help, /^[A-Z].*\.$/, `${name} is explained in a sentence`);
    const series = Object.values(labels).reduce((product, values) => product * values.length, 1);
    t.ok(series * ((buckets?.length ?? 0) + 1) <= 500, `${name} has ${series} series`);
    for (const values of Object.values(labels))
      t.equal(new Set(values).size, values.length, `${name}: values once`);
    t.strictSame(buckets, buckets && [...buckets].sort((a, b) => a - b), `${name}: rising buckets`);
  }
});

t.test('a bar in a table cell is escaped', async (t) => {
  t.equal(table(['a'], [['b|c\nd']]), '| a |\n| --- |\n| b\\|c d |');
});
