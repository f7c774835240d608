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
    ['{kind: CredentialProviderConfig}', 'is not valid JSON'],
    [`${head()}providers: {}`, '"providers" must be a list'],
  ];
  for (const [document, message] of documents) t.throws(() => decodeConfig(document), { message }, document);

  const unknown: [provider: string, field: string, version?: string][] = [
    ['name: a, Name: b', 'Name'],
    ['env: [{key: b}], x: y', 'env[0].key'],
    ['tokenAttributes: {}', 'tokenAttributes', 'v1beta1'],
    ['tokenAttributes: {audience: a}', 'tokenAttributes.audience'],
  ];
  for (const [provider, field, version] of unknown) {
    const message = `strict decoding error: unknown field ${at(field)}`;
    t.throws(() => decodeConfig(`${head(version)}providers: [{${provider}}]`), { message }, provider);
  }

  const mistyped: [provider: string, message: string | RegExp][] = [
    ['name: a, name: b', 'yaml: line 3: duplicate key'],
    ['defaultCacheDuration: 10', `${at('defaultCacheDuration')} must be a string`],
    ['defaultCacheDuration: 10d', `${at('defaultCacheDuration')} is not a duration such as 1h30m or 10s`],
    ['args: [10]', `${at('args[0]')} must be a string`],
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
