import t from 'tap';
import type { CredentialSource } from '../../../src/credentials/credential.ts';
import { createPullSecretSource } from '../../../src/credentials/sources/pull-secrets.ts';
import {
  combineSources,
  createKeyring,
  mayAskAnonymously,
} from '../../../src/credentials/keyring/keyring.ts';
import { secret } from '../../../src/telemetry/secret.ts';

function fixed(name: CredentialSource['name'], ...keys: string[]): CredentialSource {
  const keyring = createKeyring(
    name,
    keys.map((key) => ({ key, credential: { username: name, password: secret('p') }, origin: name })),
  );
  return {
    name,
    lookup: (repository) => Promise.resolve(keyring.lookup(repository)),
    problems: () => [{ source: name, origin: name, message: `a problem of ${name}` }],
    fingerprint: () => keys.join(),
  };
}
const found = async (sources: CredentialSource[], repository: string) =>
  (await combineSources(sources).lookup(repository)).map(({ source, key }) => `${source} ${key}`);

t.test('sources keep their order; keys are sorted within each', async (t) => {
  const sources = [fixed('pull-secret', 'gcr.io'), fixed('docker-config', 'gcr.io', 'gcr.io/team')];
  t.strictSame(await found(sources, 'gcr.io/team/app'), [
    'pull-secret gcr.io',
    'docker-config gcr.io/team',
    'docker-config gcr.io',
  ]);
  t.strictSame(await found(sources.toReversed(), 'gcr.io/other'), [
    'docker-config gcr.io',
    'pull-secret gcr.io',
  ]);
  t.strictSame(await found([], 'gcr.io/a'), []);
});

t.test('the classic Hub key is a fallback within each source', async (t) => {
  const sources = [fixed('pull-secret', 'docker.io'), fixed('docker-config', 'index.docker.io')];
  t.strictSame(await found(sources, 'docker.io/a/b'), [
    'pull-secret docker.io',
    'docker-config index.docker.io',
  ]);
});

t.test('an error of one source fails the lookup', async (t) => {
  const bad = createPullSecretSource([{ type: 'kubernetes.io/dockercfg', data: { '.dockercfg': 'eA==' } }]);
  const both = combineSources([fixed('docker-config', 'gcr.io'), bad]);
  await t.rejects(both.lookup('gcr.io/a'), { name: 'CredentialError' });
  t.equal(both.problems().length, 2);
});

t.test('every source gets the signal and the service account', async (t) => {
  const seen: unknown[] = [];
  const { signal } = new AbortController();
  const account = { namespace: 'team', name: 'a' };
  const source: CredentialSource = {
    ...fixed('credential-provider'),
    lookup: (_, ...given) => {
      seen.push(...given);
      return Promise.resolve([]);
    },
  };
  await combineSources([fixed('docker-config'), source]).lookup('gcr.io/a', signal, account);
  t.equal(seen[0], signal);
  t.equal(seen[1], account);
});

t.test('the fingerprint depends on content, kind and order', async (t) => {
  const print = (...sources: CredentialSource[]) => combineSources(sources).fingerprint();
  const [a, b] = [fixed('pull-secret', 'a'), fixed('docker-config', 'a')];
  t.equal(print(a, b), print(a, b));
  t.not(print(a, b), print(b, a));
  t.not(print(a), print(b));
  t.not(print(a), print());
  t.not(print(a), print(fixed('pull-secret', 'b')));
});

const cases: [string, string[], boolean][] = [
  ['docker.io/library/nginx', [], true],
  ['docker.io/library/nginx', ['*.corp.example'], true],
  ['eu.corp.example/app', ['*.corp.example'], false],
  ['corp.example/app', ['*.corp.example'], true],
  ['docker.io/team/app', ['gcr.io', 'docker.io/team'], false],
  ['docker.io/other/app', ['docker.io/team'], true],
  ['registry.corp:5000/app', ['registry.corp'], true],
  ['registry.corp:5000/app', ['registry.corp:5000'], false],
  ['gcr.io/app', ['gcr.io:*'], true],
  ['gcr.io:*/app', [], true],
  ['gcr.io:*/app', ['quay.io'], false],
];
for (const [repository, patterns, expected] of cases) {
  t.test(`${repository} with [${patterns.join(', ')}]`, async (t) => {
    t.equal(mayAskAnonymously(repository, patterns), expected);
  });
}
