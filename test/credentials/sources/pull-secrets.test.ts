import t from 'tap';
import {
  createPullSecretSource,
  pullSecretNames,
  pullSecretPart,
} from '../../../src/credentials/sources/pull-secrets.ts';
import type { Secret } from '../../../src/kube/api/objects.ts';
import { reveal } from '../../../src/telemetry/secret.ts';

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

t.test('both kinds, in the order of keys and then of the pod', async (t) => {
  const secrets = [
    json('one', { 'gcr.io': entry }),
    flat('two', { 'https://gcr.io/v1/': { auth: btoa('v:q') } }),
    flat('three', { 'gcr.io/team': entry }),
  ];
  t.same(await found(secrets), [
    'pull-secret team/three gcr.io/team u:p',
    'pull-secret team/one gcr.io u:p',
    'pull-secret team/two gcr.io v:q',
  ]);
});

t.test('equal credentials of two secrets both count', async (t) => {
  t.equal((await found([json('one', { 'gcr.io': entry }), json('two', { 'gcr.io': entry })])).length, 2);
});

t.test('the classic Hub key is used only if no secret has a matching key', async (t) => {
  const classic = json('classic', { 'https://index.docker.io/v1/': entry });
  const direct = flat('direct', { 'docker.io': entry });
  t.same(await found([classic], 'docker.io/library/nginx'), ['pull-secret team/classic index.docker.io u:p']);
  t.same(await found([classic, direct], 'docker.io/library/nginx'), [
    'pull-secret team/direct docker.io u:p',
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
    t.match(source.problems(), [
      { message: /^it is ignored: the type must be kubernetes\.io\/dockerconfigjson/ },
    ]);
    t.equal(source.problems().length, 1);
  });
}

const malformed: [string, Secret, string][] = [
  ['no JSON', pullSecret('bad', 'dockercfg', { '.dockercfg': '{' }), 'is not valid JSON'],
  ['one bad auth', flat('bad', { a: entry, b: { auth: 'pants' } }), 'illegal base64 data at input byte 4'],
  ['data that is not base64', { ...flat('bad', {}), data: { '.dockercfg': 'e30' } }, 'illegal base64 data'],
];
for (const [name, bad, message] of malformed) {
  t.test(`${name} fails every pull, at any position`, async (t) => {
    const source = createPullSecretSource([json('good', { 'gcr.io': entry }), bad]);
    await t.rejects(source.lookup('gcr.io/a'), {
      name: 'CredentialError',
      code: 'malformed',
      where: 'team/bad',
    });
    await t.rejects(source.lookup('quay.io/a'), {
      message: /^pull secret team\/bad: .*the node will refuse/,
    });
    t.match(source.problems(), [{ source: 'pull-secret', origin: 'team/bad' }]);
    t.ok(source.problems()[0]?.message.includes(message));
  });
}

t.test('a key that is not a registry is reported and skipped', async (t) => {
  const source = createPullSecretSource([flat('odd', { 'gcr.io:*': entry, 'gcr.io': entry })]);
  t.equal((await source.lookup('gcr.io/a')).length, 1);
  t.match(source.problems(), [
    { origin: 'team/odd', message: 'entries skipped because their keys are not registries: 1' },
  ]);
});

t.test('the fingerprint depends on the content', async (t) => {
  const print = (secrets: Secret[]) => createPullSecretSource(secrets).fingerprint();
  t.equal(print([json('one', { a: entry })]), print([flat('two', { a: entry })]));
  t.not(print([json('one', { a: entry })]), print([json('one', { b: entry })]));
});

t.test('names: the pod’s own, else its service account’s, never both', async (t) => {
  const account = { imagePullSecrets: [{ name: 'c' }, {}] };
  t.same(pullSecretNames({ imagePullSecrets: [{ name: 'a' }, { name: '' }, {}, { name: 'b' }] }, account), [
    'a',
    'b',
  ]);
  t.same(pullSecretNames({ imagePullSecrets: [{ name: '' }] }, account), [], 'even where its own are empty');
  t.same(pullSecretNames({ imagePullSecrets: [] }, account), ['c']);
  t.same(pullSecretNames({}, account), ['c']);
  t.same(pullSecretNames({}), []);
});

t.test('pullSecretPart holds nothing else', async (t) => {
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
  t.strictSame(pullSecretPart({}), { metadata: {} });
});
