import assert from 'node:assert/strict';
import t from 'tap';
import {
  execApiVersions,
  type ProviderConfig,
  type TokenAttributes,
} from '../../../../daemon/kubelet/config/provider-config.ts';
import { validateConfig, matchImageProblem } from '../../../../daemon/kubelet/config/validate-config.ts';
import * as fc from 'fast-check';
import { splitHostPath } from '../../../../src/credentials/keyring/key.ts';
import { like } from '../../../support/like.ts';

const valid: ProviderConfig = {
  name: 'p',
  matchImages: ['registry.example'],
  defaultCacheDurationMs: 0,
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

t.test('invalid configurations give the kubelet’s messages', async (t) => {
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
      { apiVersion: '', matchImages: [], defaultCacheDurationMs: undefined },
      '[providers.apiVersion: Required value, providers.matchImages: Required value: at least 1 item in matchImages is required, providers.defaultCacheDuration: Required value]',
    ],
    [
      { defaultCacheDurationMs: -1500 },
      'providers.defaultCacheDuration: Invalid value: "-1.5s": must be greater than or equal to 0',
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
    [annotation(''), new RegExp(`${at}"": name part must be non-empty`)],
    [annotation('/a'), `${at}"/a": prefix part must be non-empty`],
    [annotation(long), `${at}"${long}": name part must be no more than 63 bytes`],
    [
      annotation('a_b/c'),
      new RegExp(`${at}"a_b/c": prefix part a lowercase RFC 1123 subdomain must consist of`),
    ],
    [annotation(`${'a.'.repeat(127)}a/b`), /prefix part must be no more than 253 bytes$/],
    [
      annotation('a/b/c'),
      new RegExp(`${at}"a/b/c": a qualified name must consist of .*\\(e\\.g\\. 'example\\.com/MyName'\\)$`),
    ],
  ];
  for (const [change, verdict] of cases) {
    const actual = validateConfig([{ ...valid, ...change }]);
    if (typeof verdict === 'string') t.equal(actual, verdict);
    else like(t, actual, verdict);
  }
  t.equal(validateConfig([]), 'providers: Required value: at least 1 item in plugins is required');
  t.equal(validateConfig([valid, valid, valid]), 'providers.name: Duplicate value: "p"', 'each error once');
});

t.test('malformed patterns give Go’s messages', async (t) => {
  const cases: [string, string | undefined][] = [
    ['registry.io/*', undefined],
    ['', undefined],
    ['%invalid%', 'parse "https://%invalid%": invalid URL escape "%in"'],
    ['a%', 'parse "https://a%": invalid URL escape "%"'],
    ['a%41', 'parse "https://a%41": invalid URL escape "%41"'],
    ['a/%zz', 'parse "https://a/%zz": invalid URL escape "%zz"'],
    ['a:b', 'parse "https://a:b": invalid port ":b" after host'],
    ['gcr.io:*', 'parse "https://gcr.io:*": invalid port ":*" after host'],
    ['a b', 'parse "https://a b": invalid character " " in host name'],
    ['a\\b', String.raw`parse "https://a\\b": invalid character "\\" in host name`],
    ['[::1', `parse "https://[::1": missing ']' in host`],
    ['[::1]x', 'parse "https://[::1]x": invalid port "x" after host'],
    ['a\nb', String.raw`parse "https://a\nb": net/url: invalid control character in URL`],
    ['a^b@c', 'parse "https://a^b@c": net/url: invalid userinfo'],
    ['a#%zz', 'parse "https://a#%zz": invalid URL escape "%zz"'],
  ];
  for (const [text, problem] of cases) t.equal(matchImageProblem(text), problem, text);
});

t.test('property: a pattern has a problem if and only if it cannot be parsed', async () => {
  const letters = fc.constantFrom(...Array.from('a.*:5/%2[]@#? \\^é\n'));
  fc.assert(
    fc.property(fc.string({ unit: letters, maxLength: 12 }), (text) => {
      const problem = matchImageProblem(text);
      assert.equal(problem === undefined, splitHostPath(text) !== undefined);
      if (problem !== undefined) assert.match(problem, /^parse "https:\/\/.*": (?!invalid URL$)/);
    }),
    { numRuns: 1000 },
  );
});
