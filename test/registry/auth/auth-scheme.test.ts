import t from 'tap';
import { authSchemeOf } from '../../../src/registry/auth/auth-scheme.ts';
import { originEndpoint } from '../../../src/registry/endpoints/default-endpoints.ts';
import { like } from '../../support/like.ts';

const endpoint = originEndpoint('registry.corp', { ca: [], client: [], skipVerify: false });
const request = (repository: string) => ({
  url: new URL(`${endpoint.base}/${repository}/manifests/v1`),
  repository,
});
const bearer = (scope: string) => `Bearer realm="https://auth.corp/token",service="s"${scope}`;

t.test('the best supported challenge is chosen', async (t) => {
  const schemeOf = (...lines: string[]) => authSchemeOf(request('app'), lines, '203.0.113.7');
  t.equal(schemeOf(), undefined);
  t.equal(schemeOf('Digest realm="x"', 'Negotiate'), undefined);
  t.strictSame(schemeOf('Basic realm="x"', 'Digest realm="x"'), { scheme: 'basic' });
  // tap takes any two URLs for the same.
  t.strictSame(JSON.parse(JSON.stringify(schemeOf('Basic realm="x"', bearer('')))), {
    scheme: 'bearer',
    realm: 'https://auth.corp/token',
    service: 's',
    scopes: ['repository:app:pull'],
    registryIp: '203.0.113.7',
  });
  like(t, schemeOf(bearer(',scope="b repository:app:pull a repository:app:pull,push b"')), {
    scopes: ['a', 'b', 'repository:app:pull', 'repository:app:pull,push'],
  });
  like(t, schemeOf(bearer(',scope=""')), { scopes: ['repository:app:pull'] });
  like(t, schemeOf('Bearer realm="https://auth.corp"'), { service: '' });
  t.throws(() => schemeOf('Bearer service="s"'), { message: 'the Bearer challenge names no realm' });
  t.throws(() => schemeOf('Bearer realm="https://10.0.0.1/token"'), { name: 'InvalidChallenge' });
  t.throws(() => schemeOf('Bearer realm="http://auth.corp/token"'), { name: 'InvalidChallenge' });
  t.notOk('registryIp' in (authSchemeOf(request('app'), [bearer('')], undefined) ?? {}));
});
