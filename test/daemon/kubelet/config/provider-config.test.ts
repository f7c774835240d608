import t from 'tap';
import { decodeConfig } from '../../../../daemon/kubelet/config/provider-config.ts';

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
      defaultCacheDurationMs: 43_200_000,
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
    {
      name: '',
      matchImages: [],
      defaultCacheDurationMs: undefined,
      apiVersion: '',
      args: undefined,
      env: undefined,
      tokenAttributes: undefined,
    },
  ]);
  t.strictSame(decodeConfig(head()), [], 'validation refuses that');
  t.strictSame(decodeConfig(`${head()}providers: null`), []);
});

t.test('strict decoding reports the kubelet’s errors', async (t) => {
  const json = '{"kind":"CredentialProviderConfig","apiVersion":"kubelet.config.k8s.io/v1"';
  const documents: [string, string][] = [
    ['', "Object 'Kind' is missing"],
    ['[]', 'cannot unmarshal array into the document of type object'],
    ['kind: CredentialProviderConfig', "Object 'apiVersion' is missing"],
    [head().replace('CredentialProviderConfig', 'X'), `no kind "X" is registered for version "${group}/v1"`],
    [head('v2'), `no kind "CredentialProviderConfig" is registered for version "${group}/v2"`],
    [`${head()}Providers: []`, 'strict decoding error: unknown field "Providers"'],
    [`${json},"kind":"CredentialProviderConfig"}`, 'strict decoding error: duplicate field "kind"'],
    ['{kind: CredentialProviderConfig}', 'is not valid JSON'],
    [`${head()}providers: {}`, 'cannot unmarshal object into "providers" of type list'],
  ];
  for (const [document, message] of documents) t.throws(() => decodeConfig(document), { message }, document);

  const unknown: [provider: string, fields: string[], version?: string][] = [
    ['name: a, Name: b', ['Name']],
    ['env: [{key: b}], x: y', ['x', 'env[0].key']],
    ['tokenAttributes: {}', ['tokenAttributes'], 'v1beta1'],
    ['tokenAttributes: {audience: a}', ['tokenAttributes.audience']],
  ];
  for (const [provider, fields, version] of unknown) {
    const message = fields.map((field) => `unknown field "providers[0].${field}"`).join(', ');
    const document = `${head(version)}providers: [{${provider}}]`;
    t.throws(() => decodeConfig(document), { message: `strict decoding error: ${message}` }, provider);
  }

  const mistyped: [provider: string, message: string | RegExp][] = [
    ['name: a, name: b', 'yaml: line 3: duplicate key'],
    ['defaultCacheDuration: 10', `cannot unmarshal number into ${at('defaultCacheDuration')} of type string`],
    ['defaultCacheDuration: 10d', `${at('defaultCacheDuration')} is not a duration such as 1h30m or 10s`],
    ['args: [10]', `cannot unmarshal number into ${at('args[0]')} of type string`],
    ['args: [[a]]', `cannot unmarshal array into ${at('args[0]')} of type string`],
    ['env: [[]]', `cannot unmarshal array into ${at('env[0]')} of type object`],
    ['env: [{name: NO}]', `cannot unmarshal bool into ${at('env[0].name')} of type string`],
    [
      'tokenAttributes: {requireServiceAccount: "true"}',
      `cannot unmarshal string into ${at('tokenAttributes.requireServiceAccount')} of type bool`,
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

t.test('the message for many problems is short', async (t) => {
  // Found by fuzzing: the message was larger than the file.
  const env = Array.from({ length: 1000 }, (_, index) => `  unknown${index}: x\n`).join('');
  const head =
    'apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- name: ecr\n';
  t.throws(() => decodeConfig(head + env), {
    message: /^strict decoding error: [^]{100,2000}, and 980 more$/,
  });
});
