/** JUnit and SARIF of `archwright check`, against the rules of their schemas. */
import t from 'tap';
import { asJunit } from '../../../cmd/check/junit.ts';
import { asSarif } from '../../../cmd/check/sarif.ts';
import { classes, type Result, type Verdict } from '../../../cmd/check/verdict.ts';
import type { Checked } from '../../../cmd/check/write.ts';
import { like } from '../../support/like.ts';

const hostile = 'a<b>&"\'\u0000\u001b[31m\ud800\ufffe]]>é';

/** One result per verdict, in two files and on standard input, with extreme names. */
const checked: Checked = {
  architectures: ['arm64'],
  allowList: [],
  results: Object.keys(classes).map((verdict, index): Result => ({
    file: ['k8s/a b.yaml', '/elsewhere/c#d.yaml', 'standard input', '../up.yaml'][index % 4] ?? '',
    line: index + 1,
    namespace: index % 2 === 0 ? 'shop' : '',
    kind: 'Deployment',
    name: hostile,
    usedBy: 'app',
    image: `registry.example/app:${index}`,
    architecture: 'arm64',
    verdict: verdict as Verdict,
    why: verdict === 'ok' ? '' : hostile,
  })),
};

interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: Element[];
}

/** A strict parser of the XML that is needed here: elements, attributes in double quotes, no text. */
function parseXml(text: string): Element {
  const declaration = '<?xml version="1.0" encoding="UTF-8"?>\n';
  if (!text.startsWith(declaration)) throw new Error('no declaration');
  // XML 1.0 section 2.2: the characters of a document.
  if (!/^[\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u.test(text))
    throw new Error('no XML characters');
  const top: Element = { name: '', attributes: {}, children: [] };
  const open = [top];
  const token = /\s*<(?:\/([\w-]+)|([\w-]+)((?: [\w-]+="[^"<]*")*)(\/?))>\s*/gy;
  token.lastIndex = declaration.length;
  while (token.lastIndex < text.length) {
    const at = token.lastIndex;
    const [, closed, name, attributes = '', isEmpty] = token.exec(text) ?? [];
    if (closed !== undefined && closed === open.at(-1)?.name) open.pop();
    else if (name !== undefined) {
      const pairs = [...attributes.matchAll(/ ([\w-]+)="([^"]*)"/g)].map(([, key = '', value = '']) => [
        key,
        unescape(value),
      ]);
      if (new Set(pairs.map(([key]) => key)).size !== pairs.length) throw new Error('an attribute twice');
      const element: Element = {
        name,
        attributes: Object.fromEntries(pairs) as Record<string, string>,
        children: [],
      };
      open.at(-1)?.children.push(element);
      if (isEmpty === '') open.push(element);
    } else throw new Error(`no XML: ${text.slice(at, at + 80)}`);
  }
  const [document, ...more] = top.children;
  if (open.length !== 1 || !document || more.length > 0) throw new Error('no document');
  return document;
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' };

function unescape(value: string): string {
  return value.replaceAll(/&(?:(\w+);)?/g, (_, name: string) => {
    const letter = entities[name];
    if (letter === undefined) throw new Error('a bare &');
    return letter;
  });
}

/** The part of Jenkins' junit-10.xsd (xunit-plugin) that is used. `!` marks required attributes. */
const junit: Readonly<Record<string, { attributes: string; children: string }>> = {
  testsuites: { attributes: 'name time tests failures errors', children: 'testsuite' },
  testsuite: {
    attributes:
      'name! tests! failures! errors! group time skipped timestamp hostname id package file log url',
    children: 'testsuite properties testcase system-out system-err',
  },
  testcase: {
    attributes: 'name! time classname group',
    children: 'skipped error failure system-out system-err',
  },
  failure: { attributes: 'type message', children: '' },
  error: { attributes: 'type message', children: '' },
  skipped: { attributes: 'type message', children: '' },
};

function junitProblems({ name, attributes, children }: Element): string[] {
  const rule = junit[name];
  if (!rule) return [`no element ${name}`];
  const known = rule.attributes.split(' ');
  return [
    ...Object.keys(attributes).flatMap((key) =>
      known.some((each) => each.replace('!', '') === key) ? [] : [`${name} ${key}`],
    ),
    ...known.flatMap((each) =>
      each.endsWith('!') && attributes[each.slice(0, -1)] === undefined ? [`no ${each}`] : [],
    ),
    ...children.flatMap((child) =>
      rule.children.split(' ').includes(child.name) ? junitProblems(child) : [child.name],
    ),
  ];
}

t.test('JUnit output follows its schema', (t) => {
  const document = parseXml(asJunit(checked));
  t.strictSame(junitProblems(document), []);
  t.equal(document.name, 'testsuites');
  like(t, document.attributes, { tests: '12', failures: '5', errors: '5' });
  const cases = document.children.flatMap(({ children }) => children);
  t.equal(cases.length, 12);
  const outcomes = new Map<string | undefined, Element | undefined>(
    cases.map(({ attributes, children }) => [/:(\d+) for/.exec(attributes['name'] ?? '')?.[1], children[0]]),
  );
  const word = { fine: 'skipped', finding: 'failure', unknown: 'error' };
  for (const [index, [verdict, of]] of Object.entries(classes).entries()) {
    const outcome = outcomes.get(String(index));
    t.equal(outcome?.name, verdict === 'ok' ? undefined : word[of], verdict);
    const { file, line } = checked.results[index] ?? {};
    if (outcome)
      t.equal(outcome.attributes['message'], `${file}:${line}: ${verdict}: a<b>&"'??[31m\ufffd?]]>é`);
  }
  for (const suite of document.children) {
    const count = (name: string): string =>
      String(suite.children.filter(({ children }) => children[0]?.name === name).length);
    like(t, suite.attributes, {
      tests: String(suite.children.length),
      failures: count('failure'),
      errors: count('error'),
      skipped: count('skipped'),
    });
  }
  t.strictSame(junitProblems(parseXml(asJunit({ ...checked, results: [] }))), []);
  t.end();
});

type Schema =
  | 'string'
  | 'uri'
  | 'line'
  | 'index'
  | { readonly oneOf: readonly string[] }
  | { readonly listOf: Schema }
  | { readonly map: 'string' }
  | { readonly [field: string]: Schema };

const message: Schema = { 'text!': 'string' };
const level: Schema = { oneOf: ['none', 'note', 'warning', 'error'] };

/**
 * The part of sarif-schema-2.1.0.json that is used. As in the schema, objects have no other properties. `!`
 * marks required ones.
 */
const sarif: Schema = {
  $schema: 'uri',
  'version!': { oneOf: ['2.1.0'] },
  'runs!': {
    listOf: {
      'tool!': {
        'driver!': {
          'name!': 'string',
          version: 'string',
          rules: { listOf: { 'id!': 'string', shortDescription: message, defaultConfiguration: { level } } },
        },
      },
      columnKind: { oneOf: ['utf16CodeUnits', 'unicodeCodePoints'] },
      results: {
        listOf: {
          ruleId: 'string',
          ruleIndex: 'index',
          level,
          'message!': message,
          locations: {
            listOf: {
              physicalLocation: { artifactLocation: { uri: 'uri' }, region: { startLine: 'line' } },
              logicalLocations: { listOf: { fullyQualifiedName: 'string', kind: 'string' } },
            },
          },
          partialFingerprints: { map: 'string' },
          suppressions: { listOf: { 'kind!': { oneOf: ['inSource', 'external'] }, justification: 'string' } },
        },
      },
    },
  },
};

/** RFC 3986: only these characters, and complete escapes. */
const uriReference = /^(?:[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+$/;

function sarifProblems(value: unknown, schema: Schema, where = '$'): string[] {
  if (schema === 'string') return typeof value === 'string' && value !== '' ? [] : [`${where}: no text`];
  if (schema === 'uri')
    return typeof value === 'string' && uriReference.test(value)
      ? []
      : [`${where}: no URI: ${String(value)}`];
  if (schema === 'line') return Number.isInteger(value) && Number(value) >= 1 ? [] : [`${where}: no line`];
  if (schema === 'index') return Number.isInteger(value) && Number(value) >= 0 ? [] : [`${where}: no index`];
  if ('oneOf' in schema)
    return (schema.oneOf as readonly unknown[]).includes(value) ? [] : [`${where}: ${String(value)}`];
  if ('listOf' in schema) {
    if (!Array.isArray(value)) return [`${where}: no list`];
    return value.flatMap((each, index) => sarifProblems(each, schema.listOf, `${where}[${index}]`));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${where}: no object`];
  const fields = Object.entries(value);
  if ('map' in schema)
    return fields.flatMap(([key, each]) => sarifProblems(each, 'string', `${where}.${key}`));
  const required = Object.keys(schema).filter((key) => key.endsWith('!'));
  return [
    ...required.flatMap((key) => (key.slice(0, -1) in value ? [] : [`${where}: no ${key}`])),
    ...fields.flatMap(([key, each]) => {
      const inner = (schema as Record<string, Schema>)[key] ?? (schema as Record<string, Schema>)[`${key}!`];
      return inner ? sarifProblems(each, inner, `${where}.${key}`) : [`${where}: unknown ${key}`];
    }),
  ];
}

interface Sarif {
  readonly runs: readonly {
    readonly tool: { readonly driver: { readonly rules: readonly { readonly id: string }[] } };
    readonly results: readonly {
      readonly ruleId: string;
      readonly ruleIndex: number;
      readonly level: string;
      readonly message: { readonly text: string };
      readonly locations: readonly {
        readonly physicalLocation: { readonly artifactLocation: { readonly uri: string } };
      }[];
      readonly suppressions?: object;
    }[];
  }[];
}

t.test('SARIF output follows its schema', (t) => {
  const text = asSarif(checked, '/src/repository');
  const document = JSON.parse(text) as Sarif;
  t.strictSame(sarifProblems(document, sarif), []);
  const [first] = document.runs;
  const rules = first?.tool.driver.rules.map(({ id }) => id) ?? [];
  t.equal(new Set(rules).size, rules.length);
  t.equal(first?.results.length, 11, 'all results except ok');
  for (const { ruleId, ruleIndex, level: found, suppressions } of first?.results ?? []) {
    t.equal(rules[ruleIndex], ruleId);
    const levels = { finding: 'error', unknown: 'warning', fine: 'note' };
    t.equal(found, levels[classes[ruleId as Verdict]]);
    t.equal(suppressions !== undefined, ruleId === 'allowed');
  }
  const uris = first?.results.map(({ locations }) => locations[0]?.physicalLocation.artifactLocation.uri);
  const wanted = ['k8s/a%20b.yaml', 'file:///elsewhere/c%23d.yaml', 'stdin', 'file:///src/up.yaml'];
  t.strictSame(new Set(uris), new Set(wanted));
  t.strictSame(sarifProblems(JSON.parse(asSarif({ ...checked, results: [] }, '/')), sarif), []);
  t.end();
});

t.test('names are not links in SARIF', (t) => {
  const results = checked.results
    .filter(({ verdict }) => verdict === 'invalid')
    .map((each) => ({ ...each, image: '[x](https://evil.example)', why: String.raw`\[y](0) {0}` }));
  const document = JSON.parse(asSarif({ ...checked, results }, '/')) as Sarif;
  t.strictSame(sarifProblems(document, sarif), []);
  const shown = String.raw`\[x\](https://evil.example) for arm64: invalid: \\\[y\](0) {{0}}`;
  t.equal(document.runs[0]?.results[0]?.message.text, shown);
  t.end();
});
