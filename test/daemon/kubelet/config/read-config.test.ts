import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '../../../../daemon/kubelet/config/read-config.ts';
import { configText } from '../support.ts';
import {
  execApiVersions,
  type ProviderConfig,
  type TokenAttributes,
} from '../../../../daemon/kubelet/config/provider-config.ts';
import { validateConfig } from '../../../../daemon/kubelet/config/validate-config.ts';
import { like } from '../../../support/like.ts';

const names = async (path: string, root?: string): Promise<string[]> =>
  (await readConfig(path, root)).map(({ name }) => name);

t.test('reads one file, or the files of a directory in the order of their names', async (t) => {
  const dir = t.testdir({
    any: configText({ name: 'any' }),
    conf: {
      'b.yaml': configText({ name: 'b' }),
      'a.yml': configText({ name: 'a2' }, { name: 'a1' }),
      'B.json': configText({ name: 'B' }),
      'c.YAML': 'not read',
      'd.txt': 'not read',
      'e.json': { 'f.json': 'not read' },
    },
  });
  t.strictSame(await names(join(dir, 'any')), ['any']);
  t.strictSame(await names(join(dir, 'conf')), ['B', 'a2', 'a1', 'b']);
});

t.test('links are resolved inside the host root', async (t) => {
  const root = t.testdir({ etc: { 'real.yaml': configText({ name: 'p' }) }, conf: {} });
  symlinkSync('/etc/real.yaml', join(root, 'conf/a.yaml'));
  t.strictSame(await names('/conf', root), ['p']);
  symlinkSync('../../etc/passwd', join(root, 'conf/b.yaml'));
  await t.rejects(readConfig('/conf', root), {
    name: 'ProviderConfigError',
    message: /^unable to read file .*b\.yaml: leads out of/,
  });
  await t.rejects(readConfig('/../etc/passwd', root), { message: /unable to access path .*leads out of/ });
});

t.test('one invalid file makes the whole configuration invalid', async (t) => {
  const dir = t.testdir({
    empty: {},
    other: { 'a.txt': '' },
    twice: { 'a.json': configText({ name: 'p' }), 'b.json': configText({ name: 'p' }) },
    same: configText({ name: 'p' }, { name: 'p' }),
    broken: { 'a.json': configText({ name: 'p' }), 'b.json': '{' },
    binary: Buffer.from([0x6b, 0xff]),
    large: ' '.repeat(1_048_577),
  });
  const cases: [string, RegExp][] = [
    ['', /^credential provider config path is empty$/],
    [join(dir, 'none'), /^unable to access path ".*\/none": there is no such file$/],
    [join(dir, 'empty'), /^no configuration files found in directory ".*\/empty"$/],
    [join(dir, 'other'), /^no configuration files found/],
    [join(dir, 'twice'), /^duplicate provider name "p" found in configuration file\(s\)$/],
    [join(dir, 'same'), /^duplicate provider name "p"/],
    [join(dir, 'broken'), /^error decoding config ".*\/b\.json": is not valid JSON$/],
    [join(dir, 'binary'), /^error decoding config .*not UTF-8/],
    [join(dir, 'large'), /^unable to read file .*larger than 1048576 bytes/],
  ];
  for (const [path, message] of cases) {
    await t.rejects(readConfig(path), { name: 'ProviderConfigError', message }, path);
  }
});

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

const attributes = (change: Partial<TokenAttributes> = {}) => ({ tokenAttributes: { ...tokens, ...change } });

t.test('valid configurations have no problems', async (t) => {
  const cases: Partial<ProviderConfig>[] = [
    {},
    ...execApiVersions.map((apiVersion) => ({ apiVersion })),
    { name: '' },
    { name: '...' },
    { matchImages: ['registry.io/*', '*.a.b', 'a:5000', '[::1]:5000', 'a/%41'] },
    { env: [{ name: '', value: '' }] },
    attributes(),
    attributes({ cacheType: 'ServiceAccount', requireServiceAccount: false }),
    attributes({ requireServiceAccount: false, optionalServiceAccountAnnotationKeys: ['A.b/C'] }),
  ];
  for (const change of cases)
    t.equal(validateConfig([{ ...valid, ...change }]), undefined, JSON.stringify(change));
});

t.test('invalid configurations give all problems', async (t) => {
  const required = 'providers.tokenAttributes.requiredServiceAccountAnnotationKeys';
  const keys = ['', '/a', 'x'.repeat(64), 'a_b/c', `${'a.'.repeat(127)}a/b`, 'a/b/c'];
  const cases: [Partial<ProviderConfig>, ...problems: (string | RegExp)[]][] = [
    [
      { name: 'a/ b' },
      `providers.name: Invalid value: "a/ b": provider name cannot contain '/'`,
      'providers.name: Invalid value: "a/ b": provider name cannot contain spaces',
    ],
    [{ name: '..' }, `providers.name: Invalid value: "..": provider name cannot be '..'`],
    [
      { apiVersion: 'v2' },
      /^providers\.apiVersion: Unsupported value: "v2": supported values: "credentialprovider\.kubelet\.k8s\.io\/v1", ".*v1alpha1", ".*v1beta1"$/,
    ],
    [
      { apiVersion: '', matchImages: [], defaultCacheDuration: undefined },
      'providers.apiVersion: Required value',
      'providers.matchImages: Required value: at least 1 item in matchImages is required',
      'providers.defaultCacheDuration: Required value',
    ],
    [
      { defaultCacheDuration: -1500 },
      'providers.defaultCacheDuration: Invalid value: must be greater than or equal to 0',
    ],
    [
      { apiVersion: 'credentialprovider.kubelet.k8s.io/v1beta1', ...attributes() },
      /^providers\.tokenAttributes: Forbidden: tokenAttributes is only supported for \S+\/v1 API version$/,
    ],
    [
      attributes({ requireServiceAccount: false, requiredServiceAccountAnnotationKeys: ['a', 'a'] }),
      /^\[.*: Forbidden: requireServiceAccount cannot be false when .* is set, .*: Duplicate value: "a"\]$/,
    ],
    [
      { tokenAttributes: { serviceAccountTokenAudience: '', cacheType: '' } },
      /^\[providers\.tokenAttributes\.serviceAccountTokenAudience: Required value, providers\.tokenAttributes\.requireServiceAccount: Required value, .*cacheType: Required value: cacheType is required/,
    ],
    [
      attributes({
        requiredServiceAccountAnnotationKeys: ['b', 'a'],
        optionalServiceAccountAnnotationKeys: ['a', 'b'],
      }),
      'providers.tokenAttributes: Invalid value: ["a","b"]: annotation keys cannot be both required and optional',
    ],
    ...keys.map((key): [Partial<ProviderConfig>, string] => [
      attributes({ requiredServiceAccountAnnotationKeys: [key] }),
      `${required}: Invalid value: "${key}": it is not a key of an annotation`,
    ]),
    ...['%invalid%', 'a:b', '[::1', 'a#%zz'].map((pattern): [Partial<ProviderConfig>, string] => [
      { matchImages: [pattern] },
      `providers.matchImages: Invalid value: "${pattern}": match image is invalid: it must have the form host[:port][/path]`,
    ]),
  ];
  for (const [change, ...problems] of cases) {
    const [first = '', ...more] = problems;
    const wanted = more.length > 0 ? `[${problems.join(', ')}]` : first;
    like(t, validateConfig([{ ...valid, ...change }]), wanted);
  }
  t.equal(validateConfig([]), 'providers: Required value: at least 1 item in plugins is required');
  t.equal(validateConfig([valid, valid, valid]), 'providers.name: Duplicate value: "p"', 'each error once');
});
