/** The right column of each table in docs/install/migrate.md names settings, chart values and fields that exist. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { parse } from 'yaml';
import { settings } from '../../src/policy/settings/all.ts';
import type { Settings } from '../../src/policy/settings/setting.ts';
import { page } from './pages.ts';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}

interface Definition {
  readonly spec: { readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[] };
}

const chart = 'charts/archwright';
const values = JSON.parse(readFileSync(`${chart}/values.schema.json`, 'utf8')) as Schema;
const specs = ['clusterpodplacementconfigs', 'podplacementconfigs'].map((name) => {
  const { spec } = parse(readFileSync(`${chart}/files/crds/${name}.yaml`, 'utf8')) as Definition;
  return spec.versions[0]?.schema.openAPIV3Schema.properties?.['spec'];
});

function has(schema: Schema | undefined, key: string): boolean {
  let at = schema;
  for (const step of key.split('.')) at = at?.properties?.[step];
  return at !== undefined;
}

/** Why archwright does not have `key` or `key: value`, if it has not. */
function wrong(span: string): string | undefined {
  const [key = '', value] = span.split(': ');
  const setting = Object.hasOwn(settings, key) ? (settings as Settings)[key] : undefined;
  if (setting === undefined)
    return has(values, key) || specs.some((spec) => has(spec, key)) ? undefined : `${key} does not exist`;
  const problems: string[] = [];
  if (value !== undefined) setting.kind.read(parse(value), (message) => problems.push(`${key} ${message}`));
  return problems[0];
}

const spansOf = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span);

/** Labels and flags are not settings. After `none`, the field of a pod may follow. */
const named = page('docs/install/migrate.md')
  .text.split('\n')
  .flatMap((line) => {
    const [, theirs, ours = 'none'] = /^\| (.*) \| (.*) \|$/.exec(line) ?? [];
    if (ours.startsWith('none')) return [];
    return [...spansOf(ours), ...(ours.startsWith('same') ? spansOf(theirs) : [])];
  })
  .filter((span) => !span.startsWith('-') && !span.includes('/'));

t.test('every setting that replaces one of another program exists, with its value', async (t) => {
  t.ok(named.length > 35, `${named.length} names`);
  t.strictSame(named.map(wrong).filter(Boolean), []);
});

t.test('the check finds wrong names and values', async (t) => {
  t.equal(wrong('preferedArchitecture: amd64'), 'preferedArchitecture does not exist');
  t.match(wrong('misplacedPods: delete'), /^misplacedPods must be one of/);
});
