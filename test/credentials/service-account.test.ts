import t from 'tap';
import { isObjectName, serviceAccountOf } from '../../src/credentials/credential.ts';

t.test('only valid names of service accounts are accepted', async (t) => {
  const long = 'a'.repeat(64);
  const cases: [namespace: string, name: string, isOne: boolean][] = [
    ['default', 'default', true],
    ['a', '0', true],
    ['team-1', 'build.er-2', true],
    ['a'.repeat(63), 'a'.repeat(253), true],
    [long, 'a', false],
    ['a', 'a'.repeat(254), false],
    ['', 'a', false],
    ['a', '', false],
    ['a.b', 'c', false],
    ['a/b', 'c', false],
    ['a', 'b/c', false],
    ['a', 'b,c', false],
    ['a', 'b c', false],
    ['a', 'b:c', false],
    ['a', 'b\n', false],
    ['a\n', 'b', false],
    ['A', 'b', false],
    ['a', 'B', false],
    ['-a', 'b', false],
    ['a-', 'b', false],
    ['a', '.b', false],
    ['a', 'b..c', false],
    ['a', 'b.-c', false],
    ['a', '../b', false],
  ];
  for (const [namespace, name, isOne] of cases) {
    t.equal(isObjectName({ namespace, name }), isOne, JSON.stringify([namespace, name]));
  }
});

t.test('the account of a pod is the named one, else default', async (t) => {
  t.strictSame(serviceAccountOf('team', 'builder'), { namespace: 'team', name: 'builder' });
  for (const none of [undefined, '']) {
    t.strictSame(serviceAccountOf('team', none), { namespace: 'team', name: 'default' });
  }
  t.equal(serviceAccountOf('team', 'no such/account'), undefined);
});
