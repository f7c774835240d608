import t from 'tap';
import { originEndpoint } from '../../../src/registry/endpoints/default-endpoints.ts';
import {
  createChallengeCache,
  sameScopes,
  authSchemeOf,
  type Asked,
  type AuthScheme,
} from '../../../src/registry/auth/challenge-cache.ts';

const endpoint = originEndpoint('registry.corp', { ca: [], client: [], skipVerify: false });
const asked = (repository: string, base = endpoint.base): Asked => ({
  url: new URL(`${base}/${repository}/manifests/v1`),
  endpoint: { ...endpoint, base },
  repository,
});
const bearer = (scope: string) => `Bearer realm="https://auth.corp/token",service="s"${scope}`;

t.test('the best challenge that can be answered', async (t) => {
  const wish = (...lines: string[]) => authSchemeOf(asked('app'), lines, '203.0.113.7');
  t.equal(wish(), undefined);
  t.equal(wish('Digest realm="x"', 'Negotiate'), undefined);
  t.same(wish('Basic realm="x"', 'Digest realm="x"'), { scheme: 'basic' });
  t.same(wish('Basic realm="x"', bearer('')), {
    scheme: 'bearer',
    realm: new URL('https://auth.corp/token'),
    service: 's',
    scopes: ['repository:app:pull'],
    registryIp: '203.0.113.7',
  });
  t.match(wish(bearer(',scope="repository:app:pull repository:z:pull"')), {
    scopes: ['repository:app:pull', 'repository:z:pull'],
  });
  t.match(wish(bearer(',scope=""')), { scopes: ['repository:app:pull'] });
  t.throws(() => wish('Bearer service="s"'), { name: 'InvalidChallenge' });
  t.throws(() => wish('Bearer realm="https://10.0.0.1/token"'), { name: 'InvalidChallenge' });
  t.notOk('registryIp' in (authSchemeOf(asked('app'), [bearer('')], undefined) ?? {}));
});

t.test('what one repository taught serves the others of its endpoint, with their own scope', async (t) => {
  const wishes = createChallengeCache();
  const learned = authSchemeOf(asked('app'), [bearer('')], undefined) as AuthScheme;
  wishes.learn(asked('app'), learned);
  t.same(wishes.recall(asked('app')), learned);
  t.same(wishes.recall(asked('other')), { ...learned, scopes: ['repository:other:pull'] });
  t.equal(wishes.recall(asked('app', 'http://registry.corp/v2')), undefined, 'not of another scheme');
  t.equal(wishes.recall(asked('app', 'https://other.corp/v2')), undefined, 'not of another host');
  wishes.learn(asked('app'), { scheme: 'basic' });
  t.same(wishes.recall(asked('other')), { scheme: 'basic' });
  wishes.clear();
  t.equal(wishes.recall(asked('app')), undefined);
});

t.test('an unusual scope belongs to one repository, until it is usual again', async (t) => {
  const wishes = createChallengeCache();
  const unusual = authSchemeOf(
    asked('app'),
    [bearer(',scope="repository:project:pull"')],
    undefined,
  ) as AuthScheme;
  wishes.learn(asked('app'), unusual);
  t.same(wishes.recall(asked('app')), unusual);
  t.match(wishes.recall(asked('other')), { scopes: ['repository:other:pull'] });
  wishes.learn(asked('app'), authSchemeOf(asked('app'), [bearer('')], undefined) as AuthScheme);
  t.match(wishes.recall(asked('app')), { scopes: ['repository:app:pull'] });
});

t.test('bounded: the oldest is forgotten', async (t) => {
  const wishes = createChallengeCache();
  wishes.learn(asked('app'), { scheme: 'basic' });
  for (let n = 0; n < 1000; n += 1) wishes.learn(asked('app', `https://host-${n}/v2`), { scheme: 'basic' });
  t.equal(wishes.recall(asked('app')), undefined);
});

t.test('scopes are the same in the same order', async (t) => {
  t.ok(sameScopes(['a', 'b'], ['a', 'b']));
  t.notOk(sameScopes(['a'], ['a', 'b']));
  t.notOk(sameScopes(['a', 'b'], ['a', 'c']));
});
