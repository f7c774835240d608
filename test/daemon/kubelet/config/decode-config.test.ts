import t from 'tap';
import { decodeConfig } from '../../../../daemon/kubelet/config/provider-config.ts';
import { providerConfig } from '../../../support/fuzz/node-files.ts';
import { assertFuzz } from '../../../support/fuzz/target.ts';

const head = (version = 'v1'): string =>
  `apiVersion: kubelet.config.k8s.io/${version}\nkind: CredentialProviderConfig\n`;
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

t.test('every field', async (t) => {
  t.same(decodeConfig(full), [
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
  t.same(decodeConfig(head()), [], 'validation refuses that');
  t.same(decodeConfig(`${head()}providers: null`), []);
});

t.test('errors of strict decoding', async (t) => {
  const cases: [string, string | RegExp][] = [
    ['', "Object 'Kind' is missing"],
    ['kind: CredentialProviderConfig', "Object 'apiVersion' is missing"],
    [
      'kind: X\napiVersion: kubelet.config.k8s.io/v1',
      'no kind "X" is registered for version "kubelet.config.k8s.io/v1"',
    ],
    [head('v2'), 'no kind "CredentialProviderConfig" is registered for version "kubelet.config.k8s.io/v2"'],
    [`${head()}Providers: []`, 'strict decoding error: unknown field "Providers"'],
    [`${head()}providers: [{name: a, Name: b}]`, 'strict decoding error: unknown field "providers[0].Name"'],
    [
      `${head()}providers: [{name: a}, {env: [{key: b}], x: y}]`,
      'strict decoding error: unknown field "providers[1].x", unknown field "providers[1].env[0].key"',
    ],
    [
      `${head('v1beta1')}providers: [{tokenAttributes: {}}]`,
      'strict decoding error: unknown field "providers[0].tokenAttributes"',
    ],
    [
      `${head()}providers: [{tokenAttributes: {audience: a}}]`,
      'strict decoding error: unknown field "providers[0].tokenAttributes.audience"',
    ],
    [
      `${head()}providers: [{name: a, name: b}]`,
      /^strict decoding error: yaml: line 3: key "name" already set in map/,
    ],
    [
      '{"kind":"CredentialProviderConfig","apiVersion":"kubelet.config.k8s.io/v1","kind":"CredentialProviderConfig"}',
      'strict decoding error: duplicate field "kind"',
    ],
    ['{kind: CredentialProviderConfig}', 'is not valid JSON'],
    [`${head()}providers: {}`, 'cannot unmarshal object into "providers" of type list'],
    [
      `${head()}providers: [{defaultCacheDuration: 10}]`,
      'cannot unmarshal number into "providers[0].defaultCacheDuration" of type string',
    ],
    [
      `${head()}providers: [{defaultCacheDuration: 10d}]`,
      '"providers[0].defaultCacheDuration" is not a duration such as 1h30m or 10s',
    ],
    [
      `${head()}providers: [{args: [10]}]`,
      'cannot unmarshal number into "providers[0].args[0]" of type string',
    ],
    [
      `${head()}providers: [{env: [{name: NO}]}]`,
      /cannot unmarshal bool into "providers\[0\]\.env\[0\]\.name"/,
    ],
    [
      `${head()}providers: [{tokenAttributes: {requireServiceAccount: "true"}}]`,
      /cannot unmarshal string .* type bool/,
    ],
  ];
  for (const [document, message] of cases) t.throws(() => decodeConfig(document), { message }, document);
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

t.test('property: any text gives providers or a DecodeError', () => assertFuzz(providerConfig, 1000));
