import t from 'tap';
import {
  execApiVersions,
  type ProviderConfig,
  type TokenAttributes,
} from '../../../../daemon/kubelet/config/provider-config.ts';
import { validateConfig } from '../../../../daemon/kubelet/config/validate-config.ts';
import { like } from '../../../support/like.ts';

const valid: ProviderConfig = {
  name: 'p',
  matchImages: ['registry.example'],
  defaultCacheDuration: 0,
  apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
};
const tokens: TokenAttributes = {
  serviceAccountTokenAudience: 'aud',
  cacheType: 'Token',
  requireServiceAccount: true,
};

t.test('valid configurations have no problems', async (t) => {
  const cases: Partial<ProviderConfig>[] = [
    {},
    ...execApiVersions.map((apiVersion) => ({ apiVersion })),
    { name: '' },
    { name: '...' },
    { matchImages: ['registry.io/*', '*.a.b', 'a:5000', '[::1]:5000', 'a/%41'] },
    { env: [{ name: '', value: '' }] },
    { tokenAttributes: tokens },
    { tokenAttributes: { ...tokens, cacheType: 'ServiceAccount', requireServiceAccount: false } },
    {
      tokenAttributes: {
        ...tokens,
        requireServiceAccount: false,
        optionalServiceAccountAnnotationKeys: ['A.b/C'],
      },
    },
  ];
  for (const change of cases)
    t.equal(validateConfig([{ ...valid, ...change }]), undefined, JSON.stringify(change));
});

t.test('invalid configurations give all problems', async (t) => {
  const long = 'x'.repeat(64);
  const annotation = (key: string) => ({
    tokenAttributes: { ...tokens, requiredServiceAccountAnnotationKeys: [key] },
  });
  const at = 'providers.tokenAttributes.requiredServiceAccountAnnotationKeys: Invalid value: ';
  const cases: [Partial<ProviderConfig>, string | RegExp][] = [
    [
      { name: 'a/ b' },
      `[providers.name: Invalid value: "a/ b": provider name cannot contain '/', providers.name: Invalid value: "a/ b": provider name cannot contain spaces]`,
    ],
    [{ apiVersion: '' }, 'providers.apiVersion: Required value'],
    [
      { apiVersion: 'v2' },
      /^providers\.apiVersion: Unsupported value: "v2": supported values: "credentialprovider\.kubelet\.k8s\.io\/v1", ".*v1alpha1", ".*v1beta1"$/,
    ],
    [
      { apiVersion: 'credentialprovider.kubelet.k8s.io/v1beta1', tokenAttributes: tokens },
      /^providers\.tokenAttributes: Forbidden: tokenAttributes is only supported for \S+\/v1 API version$/,
    ],
    [
      {
        tokenAttributes: {
          ...tokens,
          requireServiceAccount: false,
          requiredServiceAccountAnnotationKeys: ['a', 'a'],
        },
      },
      /^\[.*: Forbidden: requireServiceAccount cannot be false when .* is set, .*: Duplicate value: "a"\]$/,
    ],
    [{ name: '..' }, /^providers\.name: Invalid value: "\.\.": provider name cannot be '\.\.'$/],
    [
      { apiVersion: '', matchImages: [], defaultCacheDuration: undefined },
      '[providers.apiVersion: Required value, providers.matchImages: Required value: at least 1 item in matchImages is required, providers.defaultCacheDuration: Required value]',
    ],
    [
      { defaultCacheDuration: -1500 },
      'providers.defaultCacheDuration: Invalid value: must be greater than or equal to 0',
    ],
    [
      { tokenAttributes: { serviceAccountTokenAudience: '', cacheType: '' } },
      /^\[providers\.tokenAttributes\.serviceAccountTokenAudience: Required value, providers\.tokenAttributes\.requireServiceAccount: Required value, .*cacheType: Required value: cacheType is required/,
    ],
    [
      {
        tokenAttributes: {
          ...tokens,
          requiredServiceAccountAnnotationKeys: ['b', 'a'],
          optionalServiceAccountAnnotationKeys: ['a', 'b'],
        },
      },
      'providers.tokenAttributes: Invalid value: ["a","b"]: annotation keys cannot be both required and optional',
    ],
    ...['', '/a', long, 'a_b/c', `${'a.'.repeat(127)}a/b`, 'a/b/c'].map(
      (key): [Partial<ProviderConfig>, string] => [
        annotation(key),
        `${at}"${key}": it is not a key of an annotation`,
      ],
    ),
    ...['%invalid%', 'a:b', '[::1', 'a#%zz'].map((pattern): [Partial<ProviderConfig>, string] => [
      { matchImages: [pattern] },
      `providers.matchImages: Invalid value: "${pattern}": match image is invalid: it must have the form host[:port][/path]`,
    ]),
  ];
  for (const [change, verdict] of cases) {
    const actual = validateConfig([{ ...valid, ...change }]);
    if (typeof verdict === 'string') t.equal(actual, verdict);
    else like(t, actual, verdict);
  }
  t.equal(validateConfig([]), 'providers: Required value: at least 1 item in plugins is required');
  t.equal(validateConfig([valid, valid, valid]), 'providers.name: Duplicate value: "p"', 'each error once');
});
