import t from 'tap';
import * as fc from 'fast-check';
import {
  DecodeError,
  parseJsonValue,
  parseYamlValue as read,
  refuseDuplicates,
} from '../../../../daemon/kubelet/config/strict.ts';
import { like } from '../../../support/like.ts';
import { decodeConfig } from '../../../../daemon/kubelet/config/provider-config.ts';

t.test('invalid JSON is refused without quoting it', async (t) => {
  for (const bad of ['{"a":1,}', '\ufeff{}', 'hunter22']) {
    t.throws(() => parseJsonValue(bad), { name: 'DecodeError', message: 'is not valid JSON' }, bad);
  }
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    const nested = (depth: number) => () => parseJsonValue(`${open.repeat(depth)}1${close.repeat(depth)}`);
    t.doesNotThrow(nested(64));
    for (const depth of [65, 20_000]) t.throws(nested(depth), { message: 'is nested deeper than 64 levels' });
  }
  t.strictSame(parseJsonValue('"\\ud800"'), '\ufffd', 'as in Go');
});

t.test('duplicate members are refused at every level', async (t) => {
  const cases: [json: string, path: string | undefined][] = [
    ['{"a":1,"b":[{"a":1},{"a":1}],"c":{"a":2}}', undefined],
    ['{"a":1,"a":1}', 'a'],
    ['{"a":{"b":[{},{"c":1,"\\u0063":2}]}}', 'a.b[1].c'],
  ];
  for (const [json, path] of cases) {
    const message = `strict decoding error: duplicate field "${path}"`;
    if (path === undefined) t.doesNotThrow(() => refuseDuplicates(json), json);
    else t.throws(() => refuseDuplicates(json), { name: 'DecodeError', message }, json);
  }
});

t.test('YAML 1.1 scalars are read as in Go', async (t) => {
  const cases: [string, unknown][] = [
    ['yes', true],
    ['on', true],
    ['off', false],
    ['yEs', 'yEs'],
    ['~', undefined],
    ['Null', undefined],
    ['', undefined],
    ['"yes"', 'yes'],
    ["'10'", '10'],
    ['2001-12-14', '2001-12-14'],
    ['12:30', '12:30'],
    ['1.2.3', '1.2.3'],
    ['!!str 10', '10'],
    ['!own text', 'text'],
    ['|\n  a\n  b\n', 'a\nb\n'],
    ['>-\n  a\n  b\n', 'a b'],
  ];
  for (const [text, expected] of cases) t.strictSame(read(`value: ${text}`), { value: expected }, text);
  for (const text of ['10', '-1', '0x1F', '0b11', '0777', '1_000', '1.5', '.5', '1e3', '+1', '.inf']) {
    t.equal(typeof (read(`- ${text}`) as unknown[])[0], 'number', text);
  }
  for (const text of ['0x', '1__m', '09a', '1e', '.e', '_1', '.', '-.', '._', 'e5', '._1'])
    t.strictSame(read(`- ${text}`), [text]);
});

t.test('keys become strings; aliases and merges are followed', async (t) => {
  t.strictSame(read('1: a\nyes: b\n"c": d'), { '1': 'a', true: 'b', c: 'd' });
  t.strictSame(read('a: &x {b: c}\nd: *x'), { a: { b: 'c' }, d: { b: 'c' } });
  t.strictSame(read('a: &x {b: c}\nd:\n  <<: *x\n  e: f'), { a: { b: 'c' }, d: { b: 'c', e: 'f' } });
  t.strictSame(read('a: &x {b: c}\nd: &y {e: f}\ng:\n  <<: [*x, *y]'), {
    a: { b: 'c' },
    d: { e: 'f' },
    g: { b: 'c', e: 'f' },
  });
  t.strictSame(read('"<<": a'), { '<<': 'a' }, 'in quotes it is a key');
});

t.test('only the first YAML document is read', async (t) => {
  t.strictSame(read('---\na: b\n---\nc: ['), { a: 'b' });
  t.strictSame(read('# nothing\n'), undefined);
});

t.test('invalid texts are refused without quoting them', async (t) => {
  const cases: [string, RegExp][] = [
    ['a: [hunter22', /^yaml: line 1: /],
    ['a: "hunter22', /^yaml: line 1: /],
    ['a: *hunter22', /^yaml: /],
    ['a: 1\nb:\n  c: 1\n  c: 2', /^yaml: line 4: duplicate key$/],
    ['<<: hunter22', /merge without a map/],
    ['\ta: b', /^yaml: /],
    [`a: ${'['.repeat(100)}${']'.repeat(100)}`, /nested deeper/],
    [
      `a0: &a0 [x]\n${Array.from({ length: 12 }, (_, i) => `a${i + 1}: &a${i + 1} [${`*a${i}, `.repeat(9)}]`).join('\n')}`,
      /too many levels or aliases/,
    ],
    ['a: &a [*a]', /nested deeper/],
    [`${': '.repeat(20_000)}a: b\n- c`, /too many levels/],
  ];
  for (const [text, message] of cases) {
    try {
      t.fail(`${text} gave ${JSON.stringify(read(text))}`);
    } catch (error) {
      t.ok(error instanceof DecodeError, text);
      like(t, error, { message });
      t.notMatch(String(error), /hunter22/);
    }
  }
});

t.test('property: JSON reads the same as YAML', async (t) => {
  const leaf = fc.oneof(fc.string(), fc.boolean());
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, leaf, tie('list'), tie('map')),
    list: fc.array(tie('value'), { maxLength: 3 }),
    map: fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), tie('value'), {
      maxKeys: 3,
      noNullPrototype: true,
    }),
  }));
  fc.assert(
    fc.property(value, (value) => {
      const text = JSON.stringify(value);
      t.strictSame(parseJsonValue(text), value);
      t.strictSame(read(text), value);
    }),
    { numRuns: 200 },
  );
});

const group = 'kubelet.config.k8s.io';
const head = (version = 'v1') => `apiVersion: ${group}/${version}\nkind: CredentialProviderConfig\n`;
const at = (field: string) => `"providers[0].${field}"`;
const full = `${head()}providers:
- name: ecr
  matchImages: ["*.dkr.ecr.*.amazonaws.com", 'b']
  defaultCacheDuration: 12h
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  args: [get-credentials, "10"]
  env: [{name: AWS_REGION, value: eu-west-1}, {name: EMPTY}]
  tokenAttributes:
    serviceAccountTokenAudience: aud
    cacheType: Token
    requireServiceAccount: yes
    requiredServiceAccountAnnotationKeys: [a/b]
    optionalServiceAccountAnnotationKeys: [c/d]
- {}
`;

t.test('every field is read', async (t) => {
  t.strictSame(decodeConfig(full), [
    {
      name: 'ecr',
      matchImages: ['*.dkr.ecr.*.amazonaws.com', 'b'],
      defaultCacheDuration: 43_200_000,
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
      args: ['get-credentials', '10'],
      env: [
        { name: 'AWS_REGION', value: 'eu-west-1' },
        { name: 'EMPTY', value: '' },
      ],
      tokenAttributes: {
        serviceAccountTokenAudience: 'aud',
        cacheType: 'Token',
        requireServiceAccount: true,
        requiredServiceAccountAnnotationKeys: ['a/b'],
        optionalServiceAccountAnnotationKeys: ['c/d'],
      },
    },
    { name: '', matchImages: [], apiVersion: '' },
  ]);
  t.strictSame(decodeConfig(head()), [], 'validation refuses that');
  t.strictSame(decodeConfig(`${head()}providers: null`), []);
});

t.test('strict decoding reports the kubelet’s errors', async (t) => {
  const json = '{"kind":"CredentialProviderConfig","apiVersion":"kubelet.config.k8s.io/v1"';
  const documents: [string, string][] = [
    ['', "Object 'Kind' is missing"],
    ['[]', 'the document must be an object'],
    ['kind: CredentialProviderConfig', "Object 'apiVersion' is missing"],
    [head().replace('CredentialProviderConfig', 'X'), `no kind "X" is registered for version "${group}/v1"`],
    [head('v2'), `no kind "CredentialProviderConfig" is registered for version "${group}/v2"`],
    [`${head()}Providers: []`, 'strict decoding error: unknown field "Providers"'],
    [`${json},"kind":"CredentialProviderConfig"}`, 'strict decoding error: duplicate field "kind"'],
    [`${head()}providers: {}`, '"providers" must be a list'],
  ];
  for (const [document, message] of documents) t.throws(() => decodeConfig(document), { message }, document);

  const unknown: [provider: string, field: string, version?: string][] = [
    ['name: a, Name: b', 'Name'],
    ['env: [{key: b}], x: y', 'env[0].key'],
    ['tokenAttributes: {}', 'tokenAttributes', 'v1beta1'],
  ];
  for (const [provider, field, version] of unknown) {
    const message = `strict decoding error: unknown field ${at(field)}`;
    t.throws(() => decodeConfig(`${head(version)}providers: [{${provider}}]`), { message }, provider);
  }

  const mistyped: [provider: string, message: string | RegExp][] = [
    ['name: a, name: b', 'yaml: line 3: duplicate key'],
    ['defaultCacheDuration: 10', `${at('defaultCacheDuration')} must be a string`],
    ['defaultCacheDuration: 10d', `${at('defaultCacheDuration')} is not a duration such as 1h30m or 10s`],
    ['env: [[]]', `${at('env[0]')} must be an object`],
    ['env: [{name: NO}]', `${at('env[0].name')} must be a string`],
    [
      'tokenAttributes: {requireServiceAccount: "true"}',
      `${at('tokenAttributes.requireServiceAccount')} must be true or false`,
    ],
  ];
  for (const [provider, message] of mistyped) {
    const wanted = { name: 'DecodeError', message };
    t.throws(() => decodeConfig(`${head()}providers: [{${provider}}]`), wanted, provider);
  }
});

t.test('an error quotes no value of a variable', async (t) => {
  for (const document of [
    `${head()}providers: [{env: [{name: A, value: hunter22, x: hunter22}]}]`,
    `${head()}providers: [{env: [{name: A, value: [hunter22]}]}]`,
    `${head()}providers: [{env: [{name: A, value: "hunter22}]}]`,
    `{"kind":"CredentialProviderConfig","apiVersion":"kubelet.config.k8s.io/v1","providers":[{"env":"hunter22"`,
  ]) {
    t.throws(() => decodeConfig(document), { message: /^(?!.*hunter22)/ });
  }
});
