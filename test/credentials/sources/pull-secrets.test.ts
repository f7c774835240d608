import t from 'tap';
import {
  createPullSecretSource,
  pullSecretNames,
  pullSecretPart,
} from '../../../src/credentials/sources/pull-secrets.ts';
import type { Secret } from '../../../src/kube/api/objects.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { like } from '../../support/like.ts';

function pullSecret(name: string, type: string, data: Record<string, string>): Secret {
  return {
    metadata: { namespace: 'team', name },
    type: `kubernetes.io/${type}`,
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, btoa(value)])),
  };
}
const json = (name: string, auths: object) =>
  pullSecret(name, 'dockerconfigjson', { '.dockerconfigjson': JSON.stringify({ auths }) });
const flat = (name: string, auths: object) =>
  pullSecret(name, 'dockercfg', { '.dockercfg': JSON.stringify(auths) });

async function found(secrets: Secret[], repository = 'gcr.io/team/app'): Promise<string[]> {
  const matched = await createPullSecretSource(secrets).lookup(repository);
  return matched.map(({ credential, key, origin, source }) => {
    return `${source} ${origin} ${key} ${credential.username}:${reveal(credential.password)}`;
  });
}

const entry = { username: 'u', password: 'p' };

t.test('credentials of both kinds are sorted by key, then by the order of the pod', async (t) => {
  const secrets = [
    json('one', { 'gcr.io': entry }),
    flat('two', { 'https://gcr.io/v1/': { auth: btoa('v:q') } }),
    flat('three', { 'gcr.io/team': entry }),
  ];
  t.strictSame(await found(secrets), [
    'pull-secret team/three gcr.io/team u:p',
    'pull-secret team/one gcr.io u:p',
    'pull-secret team/two gcr.io v:q',
  ]);
});

const ignored: [string, Secret][] = [
  ['another type', pullSecret('x', 'basic-auth', { '.dockerconfigjson': '{"auths":{"gcr.io":{}}}' })],
  ['no type', { data: { '.dockercfg': btoa('{"gcr.io":{}}') } }],
  [
    'a type that disagrees with the key',
    pullSecret('x', 'dockercfg', { '.dockerconfigjson': '{"auths":{}}' }),
  ],
  ['the other way round', pullSecret('x', 'dockerconfigjson', { '.dockercfg': '{' })],
  ['no data', { type: 'kubernetes.io/dockercfg' }],
  ['empty data', pullSecret('x', 'dockercfg', { '.dockercfg': '' })],
];
for (const [name, one] of ignored) {
  t.test(`${name} is ignored`, async (t) => {
    const source = createPullSecretSource([one, json('good', { 'gcr.io': entry })]);
    t.equal((await source.lookup('gcr.io/a')).length, 1);
    like(t, source.problems(), [
      { message: /^it is ignored: the type must be kubernetes\.io\/dockerconfigjson/ },
    ]);
    t.equal(source.problems().length, 1);
  });
}

const malformed: [string, Secret, string][] = [
  ['invalid JSON', pullSecret('bad', 'dockercfg', { '.dockercfg': '{' }), 'is not valid JSON'],
  ['one bad auth', flat('bad', { a: entry, b: { auth: 'pants' } }), 'illegal base64 data'],
  ['data that is not base64', { ...flat('bad', {}), data: { '.dockercfg': 'e30' } }, 'illegal base64 data'],
];
for (const [name, bad, message] of malformed) {
  t.test(`${name} fails every pull, at any position`, async (t) => {
    const source = createPullSecretSource([json('good', { 'gcr.io': entry }), bad]);
    await t.rejects(source.lookup('gcr.io/a'), {
      name: 'CredentialError',
      where: 'team/bad',
    });
    await t.rejects(source.lookup('quay.io/a'), {
      message: /^pull secret team\/bad: .*the node will refuse/,
    });
    like(t, source.problems(), [{ source: 'pull-secret', origin: 'team/bad' }]);
    t.ok(source.problems()[0]?.message.includes(message));
  });
}

t.test('a key that is not a registry is reported and skipped', async (t) => {
  const source = createPullSecretSource([flat('odd', { 'gcr.io:*': entry, 'gcr.io': entry })]);
  t.equal((await source.lookup('gcr.io/a')).length, 1);
  like(t, source.problems(), [
    { origin: 'team/odd', message: 'entries skipped because their keys are not registries: 1' },
  ]);
});

const entries = (count: number, prefix: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}.example`, entry]));
const large = (name: string, kib: number) =>
  json(name, { 'gcr.io': { ...entry, email: 'x'.repeat((kib * 1024 * 3) / 4 - 100) } });

t.test('of all secrets of a pod, a thousand entries are read', async (t) => {
  const source = createPullSecretSource([
    json('first', entries(600, 'a')),
    json('too-many', { ...entries(400, 'b'), 'gcr.io': entry }),
    flat('fits', { ...entries(399, 'c'), 'quay.io': entry }),
    json('one-more', { 'gcr.io': entry }),
  ]);
  t.equal((await source.lookup('quay.io/a')).length, 1);
  t.strictSame(await source.lookup('gcr.io/a'), []);
  const message = 'it is ignored: archwright reads of all pull secrets of a pod only 1000 entries';
  like(t, source.problems(), [
    { origin: 'team/too-many', message },
    { origin: 'team/one-more', message },
  ]);
});

t.test('twenty credentials are tried for an image, the best first', async (t) => {
  const keys = Array.from({ length: 30 }, (_, index) => `https://gcr.io?${index}`);
  const general = json('general', Object.fromEntries(keys.map((key) => [key, entry])));
  const matched = await found([general, json('special', { 'gcr.io/team': entry })]);
  t.equal(matched.length, 20);
  t.equal(matched[0], 'pull-secret team/special gcr.io/team u:p');
});

t.test('entries of one registry under several keys count, and so do those of a second auths', async (t) => {
  const keys = Array.from({ length: 1001 }, (_, index) => `"gcr.io?${index}":{}`).join(',');
  const two = `{"auths":{"a":{}},"auths":{${keys.slice(0, keys.lastIndexOf(','))}}}`;
  for (const text of [`{"auths":{${keys}}}`, two]) {
    const source = createPullSecretSource([
      pullSecret('x', 'dockerconfigjson', { '.dockerconfigjson': text }),
    ]);
    t.strictSame(await source.lookup('gcr.io/a'), []);
    like(t, source.problems(), [{ message: /^it is ignored: .* 1000 entries$/ }]);
  }
});

t.test(
  'of all secrets of a pod, 256 KiB are read; a secret without room is not even malformed',
  async (t) => {
    const broken = pullSecret('broken', 'dockercfg', { '.dockercfg': `{${' '.repeat(100 * 1024)}` });
    const source = createPullSecretSource([
      large('a', 150),
      large('b', 105),
      broken,
      json('c', { 'gcr.io': entry }),
    ]);
    t.strictSame(
      (await source.lookup('gcr.io/a')).map(({ origin }) => origin),
      ['team/a', 'team/b', 'team/c'],
    );
    like(t, source.problems(), [
      {
        origin: 'team/broken',
        message:
          'it is ignored: archwright reads of all pull secrets of a pod only 256 KiB, as Kubernetes stores them',
      },
    ]);
    t.equal(source.problems().length, 1);
  },
);

t.test('names that are missing or empty are ignored', async (t) => {
  const imagePullSecrets = [{ name: 'a' }, { name: '' }, {}, { name: 'b' }];
  t.strictSame(pullSecretNames({ imagePullSecrets }), ['a', 'b']);
  t.strictSame(pullSecretNames({}), []);
});

t.test('pullSecretPart keeps only the needed parts of a Secret', async (t) => {
  const data = { '.dockerconfigjson': 'e30=', '.dockercfg': 'e30=', 'tls.key': 'secret' };
  const metadata = { namespace: 'shop', name: 'regcred', labels: { a: 'b' } };
  const named = { namespace: 'shop', name: 'regcred' };
  const type = 'kubernetes.io/dockerconfigjson';
  t.strictSame(pullSecretPart({ metadata, type, data }), {
    metadata: named,
    type,
    data: { '.dockerconfigjson': 'e30=' },
  });
  t.strictSame(pullSecretPart({ metadata, type: 'Opaque', data }), { metadata: named, type: 'Opaque' });
  t.strictSame(pullSecretPart({ type }), { metadata: {}, type });
  const part = pullSecretPart(large('big', 257));
  t.strictSame(part, { metadata: { namespace: 'team', name: 'big' }, type, isTooLarge: true });
  like(t, createPullSecretSource([part]).problems(), [{ message: /^it is ignored: .* only 256 KiB/ }]);
  t.hasProp(pullSecretPart(large('fits', 256)), 'data');
  t.strictSame(pullSecretPart({}), { metadata: {} });
});
