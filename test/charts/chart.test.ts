import { globSync, readFileSync } from 'node:fs';
import t from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { subcommand as report } from '../../cmd/report.ts';
import { parsePrices } from '../../cmd/report/prices/prices.ts';
import { alerts } from '../../scripts/docs/chart/alerts.ts';
import { chartSections, firstValues, isSetting } from '../../scripts/docs/chart/chart.ts';
import { rows } from '../../scripts/docs/chart/dashboard.ts';
import { setByChart } from '../../scripts/docs/chart/settings.ts';
import { pages } from '../../scripts/docs/main.ts';
import { metricGroups } from '../../scripts/docs/metrics.ts';
import { settings } from '../../src/policy/settings/all.ts';
import { flagName } from '../../src/policy/settings/setting.ts';
import { like } from '../support/like.ts';

const chart = 'charts/archwright';
const values = chartSections().flatMap((section) => section.values);
const templates = globSync(`${chart}/templates/**/*.{yaml,tpl,txt}`)
  .map((file) => readFileSync(file, 'utf8'))
  .join('\n');

t.test('every setting is a value of the chart, or the chart sets it', async (t) => {
  const exposed = new Set(values.filter(isSetting).map(({ key }) => key));
  for (const key of Object.keys(settings)) t.not(exposed.has(key), setByChart.has(key), key);
  for (const key of setByChart) t.ok(Object.hasOwn(settings, key), `${key} is not a setting any more`);
  t.equal(new Set(values.map(({ key }) => key)).size, values.length, 'no value twice');
});

t.test('values.yaml has exactly the values of the schema, with their defaults', async (t) => {
  const file: unknown = parse(readFileSync(`${chart}/values.yaml`, 'utf8'));
  for (const { key, default: preset } of values) t.strictSame(at(file, key), preset, key);
  t.strictSame(keysOf(file, new Set(values.map(({ key }) => key))), []);
});

t.test('an example differs from the default and has its type', async (t) => {
  for (const { key, default: preset, example, schema } of values) {
    t.notSame(example, preset, key);
    if (typeof schema['type'] === 'string') t.equal(typeOf(example), schema['type'], key);
  }
});

t.test('ten values come first, labels and annotations last', async (t) => {
  const file = readFileSync(`${chart}/values.yaml`, 'utf8');
  const readme = readFileSync(`${chart}/README.md`, 'utf8');
  const [first, ...rest] = chartSections();
  t.strictSame(
    first?.values.map(({ key }) => key),
    firstValues,
  );
  t.equal(firstValues.length, 10);
  t.equal(rest.at(-1)?.title, 'Labels and annotations');
  for (const text of [file, readme]) {
    const titles = [...text.matchAll(/^#(?:##| ---) (.+)$/gm)].map(([, title]) => title);
    t.equal(
      titles.find((title) => chartSections().some((section) => section.title === title)),
      first?.title,
    );
    t.equal(titles.at(-1), 'Labels and annotations');
  }
  const [written = ''] = readme.split('\n## Values\n');
  t.ok(written.split(/\s+/).length < 2500, 'the part that is not generated is short');
});

t.test('the README lists every value or its table', async (t) => {
  const readme = readFileSync(`${chart}/README.md`, 'utf8');
  for (const { key } of values) {
    const [table = '', ...rest] = key.split('.');
    const name = rest.join('.').replace(/^(?:labels|annotations)$/, 'pod.$&');
    const isCommon = readme.includes(`\`${name}\``) && readme.includes(`\`${table}\``);
    t.ok(readme.includes(`\`${key}\``) || isCommon, key);
  }
});

t.test('no value changes the label by which explain, report and status find archwright', async (t) => {
  const objects = parseAllDocuments(readFileSync('deploy/archwright.yaml', 'utf8')).map(
    (document) =>
      document.toJS() as { kind: string; metadata: { name: string; labels?: object }; data?: object },
  );
  const isOutside = /^(?:CustomResourceDefinition|Namespace)$/;
  const partOf = { 'app.kubernetes.io/part-of': 'archwright' };
  for (const { kind, metadata } of objects.filter((each) => !isOutside.test(each.kind)))
    like(t, metadata.labels, partOf, `${kind} ${metadata.name}`);
  const found = objects.filter(
    ({ kind, metadata }) =>
      kind === 'ConfigMap' && !Object.hasOwn(metadata.labels ?? {}, 'app.kubernetes.io/component'),
  );
  like(t, found, [{ metadata: { name: 'archwright' }, data: { 'archwright.toml': String } }]);
  t.equal(found.length, 1);
  t.match(
    readFileSync(`${chart}/templates/_names.tpl`, 'utf8'),
    /"app\.kubernetes\.io\/part-of" "archwright"[^]*mergeOverwrite \(dict\) .* \$all -\}\}/,
    'the fixed labels are merged last',
  );
});

t.test('templates use only described values', async (t) => {
  const known = new Set(
    values.flatMap(({ key }) => key.split('.').map((_, index, steps) => steps.slice(0, index + 1).join('.'))),
  );
  const used = [...templates.matchAll(/\.Values\.([A-Za-z]+(?:\.[A-Za-z]+)*)/g)].map(([, key = '']) => key);
  t.ok(used.length > 50);
  for (const key of new Set(used)) {
    // Parts of an object value need no description: `.Values.namespaceSelector.matchLabels`.
    t.ok(
      known.has(key) ||
        [...known].some(
          (other) => key.startsWith(`${other}.`) && values.some((value) => value.key === other),
        ),
      key,
    );
  }
});

t.test('the scheduled report uses existing flags and a file of prices', async (t) => {
  const template = readFileSync(`${chart}/templates/report.yaml`, 'utf8');
  const flags = [...template.matchAll(/- --([a-z-]+)/g)].map(([, name = '']) => name);
  for (const name of ['prices', 'newer-tags']) t.ok(flags.includes(name), name);
  for (const name of flags) t.ok(Object.keys(report.flags).map(flagName).includes(name), name);
  const { example, default: preset } = values.find(({ key }) => key === 'report.prices') ?? {};
  t.equal(preset, '', 'none');
  t.ok(parsePrices(typeof example === 'string' ? example : '', 'example').entries.length > 0);
});

t.test('alerts and dashboard query existing metrics and labels', async (t) => {
  const known = new Map(
    metricGroups.flatMap(({ metrics }) => metrics.map((metric) => [metric.name, metric])),
  );
  const queries = [
    ...alerts.map(({ name, expr }) => [name, expr] as const),
    ...Object.values(rows)
      .flat()
      .flatMap(({ title, queries }) => Object.values(queries).map((query) => [title, query] as const)),
  ];
  for (const [where, query] of queries) {
    const metrics = [...query.matchAll(/\b((?:archwright|process|nodejs)_[a-z0-9_]+)(?:\{([^}]*)\})?/g)];
    t.ok(metrics.length > 0, where);
    for (const [, name = '', matchers = ''] of metrics) {
      const metric = known.get(name) ?? known.get(name.replace(/_(?:bucket|sum|count)$/, ''));
      if (!metric) {
        t.fail(`${where}: ${name} is not a metric`);
        continue;
      }
      for (const [, label = '', wanted = ''] of matchers.matchAll(/([a-z]+)=~?"([^"]*)"/g)) {
        const has = metric.labels?.[label] ?? [];
        for (const value of wanted.split('|'))
          t.ok(has.includes(value), `${where}: ${name}{${label}="${value}"}`);
      }
      for (const [, label = ''] of query.matchAll(/by \(([a-z]+)\)/g)) {
        if (label !== 'le')
          t.ok(Object.hasOwn(metric.labels ?? {}, label), `${where}: ${name} has no label ${label}`);
      }
    }
  }
});

t.test('each alert has a runbook, and each runbook an alert', async (t) => {
  const files = globSync('docs/operate/runbooks/!(README).md');
  t.strictSame(files.sort(), alerts.map(({ name }) => `docs/operate/runbooks/${name}.md`).sort());
  for (const file of files) t.ok(Object.hasOwn(pages, file));
});

t.test('chart values named in the runbooks exist', async (t) => {
  const known = new Set(values.map(({ key }) => key));
  const tables = new Set(values.map(({ key }) => key.split('.')[0]));
  for (const { name, meaning, steps } of alerts) {
    for (const [, key = ''] of [meaning, ...steps]
      .join(' ')
      .matchAll(/`([a-z][A-Za-z]*\.[A-Za-z.]+)(?::[^`]*)?`/g)) {
      if (tables.has(key.split('.')[0])) t.ok(known.has(key), `${name}: ${key}`);
    }
  }
});

t.test('chart, program and image have one version', async (t) => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const { appVersion, version: chartVersion } = parse(readFileSync(`${chart}/Chart.yaml`, 'utf8')) as Record<
    string,
    string
  >;
  t.equal(appVersion, version);
  t.equal(chartVersion, version);
});

function at(value: unknown, path: string): unknown {
  let found = value;
  for (const step of path.split('.')) {
    found =
      typeof found === 'object' && found !== null ? (found as Record<string, unknown>)[step] : undefined;
  }
  return found;
}

/** Paths in the file without a described value. */
function keysOf(value: unknown, known: ReadonlySet<string>, prefix = ''): string[] {
  if (known.has(prefix)) return [];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [prefix];
  return Object.entries(value).flatMap(([key, inner]) =>
    keysOf(inner, known, prefix === '' ? key : `${prefix}.${key}`),
  );
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

/*
 * The rules of Red Hat's chart verification (redhat-certification/chart-verifier, profile partner 1.3), for
 * charts in the console of OpenShift. Not here: `helm lint`, `helm install` and `helm test`, which run in
 * `test/e2e`, and a certification of the image, which only Red Hat can give.
 */
const about = parse(readFileSync(`${chart}/Chart.yaml`, 'utf8')) as Readonly<Record<string, unknown>>;
const manifests = globSync(`${chart}/templates/**/*.yaml`);

/** Kubernetes of each OpenShift that the verification knows (opdev/getocprange). */
const minors = { oldest: 13, newest: 34 };

t.test('the chart satisfies the rules of the verification', async (t) => {
  t.equal(about['apiVersion'], 'v2', 'is-helm-v3');
  const lengthOf = (file: string): number => readFileSync(`${chart}/${file}`, 'utf8').length;
  t.ok(lengthOf('README.md') > 0, 'has-readme');
  t.ok(lengthOf('templates/NOTES.txt') > 0, 'has-notes');
  t.ok(
    Object.keys(parse(readFileSync(`${chart}/values.yaml`, 'utf8')) as object).length > 0,
    'contains-values',
  );
  t.ok(lengthOf('values.schema.json') > 0, 'contains-values-schema');
  t.ok(
    manifests.some((file) => file.startsWith(`${chart}/templates/tests/`)),
    'contains-test',
  );
  const [, first] = /^>=1\.(\d+)\.0-0$/.exec(String(about['kubeVersion'])) ?? [];
  t.ok(
    Number(first) >= minors.oldest && Number(first) <= minors.newest,
    'has-kubeversion: a range without ||, in which an OpenShift is',
  );
  t.strictSame(globSync(`${chart}/{crds,charts}/**`), [], 'not-contains-crds, nor by a subchart');
  const kinds = manifests.flatMap((file) => readFileSync(file, 'utf8').match(/^kind:.*$/gm) ?? []);
  t.ok(kinds.length > 20);
  t.notOk(kinds.includes('kind: CSIDriver'), 'not-contain-csi-objects');
  const { 'charts.openshift.io/name': name } = about['annotations'] as Readonly<Record<string, string>>;
  t.ok(name, 'required-annotations-present');
});

t.test('one image with a registry has to be certified', async (t) => {
  const rendered = readFileSync('deploy/archwright.yaml', 'utf8');
  const images = [...rendered.matchAll(/\s+image:[ \t]+(\S.*)\s*$/gm)].map(([, image]) => image);
  t.strictSame([...new Set(images)], [`ghcr.io/archwright/archwright:${String(about['appVersion'])}`]);
});
