import t from 'tap';
import { createReferenceCache, maxCachedLength } from '../../../src/images/references/reference-cache.ts';

t.test('references are parsed once', async (t) => {
  const parse = createReferenceCache(2);
  t.equal(parse('nginx'), parse('nginx'));
  t.equal(parse('nginx').repository, 'docker.io/library/nginx');
  t.throws(() => parse('NGINX'), { code: 'invalid-reference' });
  t.throws(() => parse('NGINX'), { code: 'invalid-reference' });
  const long = `${'a.'.repeat(maxCachedLength)}b/c`;
  t.not(parse(long), parse(long), 'but long ones each time');
  t.same(parse(long), parse(long));
});
