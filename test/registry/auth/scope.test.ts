import t from 'tap';
import { parseChallenges } from '../../../src/registry/auth/challenge.ts';
import { repositoryScope, tokenOptions, tokenScopes, sameScopes } from '../../../src/registry/auth/scope.ts';

t.test('scopes', (t) => {
  t.equal(repositoryScope('library/nginx'), 'repository:library/nginx:pull');
  t.equal(repositoryScope('a', true), 'repository:a:pull,push');
  t.same(tokenScopes([], []), []);
  t.same(tokenScopes(['b', 'a', 'b'], ['a', 'B', 'a:pull,push', 'a:pull']), [
    'B',
    'a',
    'a:pull',
    'a:pull,push',
    'b',
  ]);
  t.end();
});

const optionsOf = (line: string) => {
  const [challenge] = parseChallenges([line]);
  return tokenOptions(challenge ?? { parameters: new Map() });
};

t.test('the token server of a challenge', (t) => {
  t.same(optionsOf('Bearer realm="https://a/token?x=1",service="s",scope="one two"'), {
    realm: 'https://a/token?x=1',
    service: 's',
    scopes: ['one', 'two'],
  });
  t.same(optionsOf('Bearer realm="https://a"'), { realm: 'https://a', service: '', scopes: [] });
  t.same(optionsOf('Bearer realm="https://a",scope=""').scopes, [''], 'present but empty is one empty scope');
  t.end();
});

t.test('challenges that lead to no token', (t) => {
  for (const realm of ['127.0.0.1:8080', '/token', 'token', '', 'https://', 'mailto:a@b', 'http://[::1/']) {
    t.throws(
      () => optionsOf(`Bearer realm="${realm}"`),
      { code: 'invalid-challenge', temporary: false },
      realm,
    );
  }
  t.throws(() => optionsOf('Bearer service="s"'), { message: 'the Bearer challenge names no realm' });
  t.end();
});

t.test('scopes are equal in the same order', async (t) => {
  t.ok(sameScopes(['a', 'b'], ['a', 'b']));
  t.notOk(sameScopes(['a'], ['a', 'b']));
  t.notOk(sameScopes(['a', 'b'], ['a', 'c']));
});
