import t from 'tap';
import {
  authSchemeOf,
  ChallengeCache,
  type ChallengedRequest,
  type AuthScheme,
} from '../../../src/registry/auth/auth-scheme.ts';
import { originEndpoint } from '../../../src/registry/endpoints/default-endpoints.ts';
import { credential } from '../../support/registry/client.ts';

const endpoint = originEndpoint('registry.corp', { ca: [], client: [], skipVerify: false });
const request = (repository: string, base = endpoint.base): ChallengedRequest => ({
  url: new URL(`${base}/${repository}/manifests/v1`),
  endpoint: { ...endpoint, base },
  repository,
});
const bearer = (scope: string) => `Bearer realm="https://auth.corp/token",service="s"${scope}`;

t.test('the best supported challenge is chosen', async (t) => {
  const schemeOf = (...lines: string[]) => authSchemeOf(request('app'), lines, '203.0.113.7');
  t.equal(schemeOf(), undefined);
  t.equal(schemeOf('Digest realm="x"', 'Negotiate'), undefined);
  t.same(schemeOf('Basic realm="x"', 'Digest realm="x"'), { scheme: 'basic' });
  t.same(schemeOf('Basic realm="x"', bearer('')), {
    scheme: 'bearer',
    realm: new URL('https://auth.corp/token'),
    service: 's',
    scopes: ['repository:app:pull'],
    registryIp: '203.0.113.7',
  });
  t.match(schemeOf(bearer(',scope="repository:app:pull repository:z:pull"')), {
    scopes: ['repository:app:pull', 'repository:z:pull'],
  });
  t.match(schemeOf(bearer(',scope=""')), { scopes: ['repository:app:pull'] });
  t.throws(() => schemeOf('Bearer service="s"'), { name: 'InvalidChallenge' });
  t.throws(() => schemeOf('Bearer realm="https://10.0.0.1/token"'), { name: 'InvalidChallenge' });
  t.notOk('registryIp' in (authSchemeOf(request('app'), [bearer('')], undefined) ?? {}));
});

t.test(
  'the scheme of one repository serves all repositories of the endpoint, each with its own scope',
  async (t) => {
    const cache = new ChallengeCache();
    const learned = authSchemeOf(request('app'), [bearer('')], undefined) as AuthScheme;
    cache.learn(request('app'), learned);
    t.same(cache.recall(request('app')), learned);
    t.same(cache.recall(request('other')), { ...learned, scopes: ['repository:other:pull'] });
    t.equal(cache.recall(request('app', 'http://registry.corp/v2')), undefined, 'not for another scheme');
    t.equal(cache.recall(request('app', 'https://other.corp/v2')), undefined, 'not for another host');
    cache.learn(request('app'), { scheme: 'basic' });
    t.same(cache.recall(request('other')), { scheme: 'basic' });
    cache.clear();
    t.equal(cache.recall(request('app')), undefined);
  },
);

t.test('an unusual scope is remembered for its repository only, until the next challenge', async (t) => {
  const cache = new ChallengeCache();
  const unusual = authSchemeOf(
    request('app'),
    [bearer(',scope="repository:project:pull"')],
    undefined,
  ) as AuthScheme;
  cache.learn(request('app'), unusual);
  t.same(cache.recall(request('app')), unusual);
  t.match(cache.recall(request('other')), { scopes: ['repository:other:pull'] });
  cache.learn(request('app'), authSchemeOf(request('app'), [bearer('')], undefined) as AuthScheme);
  t.match(cache.recall(request('app')), { scopes: ['repository:app:pull'] });
});

t.test('with a credential, only a realm on the registry itself serves another repository', async (t) => {
  const withCredential = { ...request('other'), credential: credential('ann', 'password-a') };
  const recalled = (realm: string) => {
    const cache = new ChallengeCache();
    cache.learn(
      request('app'),
      authSchemeOf(request('app'), [`Bearer realm="${realm}"`], undefined) as AuthScheme,
    );
    return cache.recall(withCredential);
  };
  t.match(recalled('https://registry.corp/token'), { scopes: ['repository:other:pull'] });
  t.match(recalled('https://registry.corp:443/token'), { scopes: ['repository:other:pull'] });
  for (const host of ['auth.corp', 'registry.corp:5000', 'evil.registry.corp']) {
    t.equal(recalled(`https://${host}/token`), undefined, host);
  }
});

t.test('the least recently used entry is removed first', async (t) => {
  const cache = new ChallengeCache();
  cache.learn(request('app'), { scheme: 'basic' });
  for (let n = 0; n < 4096; n += 1) cache.learn(request('app', `https://host-${n}/v2`), { scheme: 'basic' });
  t.equal(cache.recall(request('app')), undefined);
});
