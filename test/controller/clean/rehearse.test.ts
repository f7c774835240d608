import t from 'tap';
import { rehearse } from '../../../src/controller/clean/rehearse.ts';
import { guardedPatch } from '../../../src/kube/api/change.ts';
import type { Patch } from '../../../src/kube/api/client.ts';

interface Listed {
  readonly metadata: { readonly resourceVersion: string };
  readonly gates: readonly string[];
}

const object = (...gates: string[]): Listed => ({ metadata: { resourceVersion: '1' }, gates });

/** Removes the gates at these positions, while `ours` is there. */
const removing =
  (...positions: number[]) =>
  (read: Listed): Patch | undefined =>
    read.gates.includes('ours')
      ? guardedPatch(
          read,
          positions.map((index) => ({ op: 'remove', path: `/gates/${index}` })),
        )
      : undefined;

t.test('a patch that leaves nothing behind', async (t) => {
  const listed = object('other', 'ours');
  t.equal(rehearse(listed, removing(1)), undefined);
  t.same(listed, object('other', 'ours'), 'the object is not changed');
});

t.test('nothing to change', async (t) => {
  t.equal(rehearse(object('other'), removing(0)), undefined);
});

t.test('a patch that removes something else', async (t) => {
  t.match(rehearse(object('other', 'ours'), removing(0)), /leave something behind/);
});

t.test('a patch that does not apply', async (t) => {
  t.match(rehearse(object('ours'), removing(7)), /would not apply/);
  t.match(rehearse({ gates: ['ours'] } as unknown as Listed, removing(0)), /would not apply/);
});

t.test('merge patches are not applied', async (t) => {
  t.equal(
    rehearse(object('ours'), () => ({ type: 'merge', body: {} })),
    undefined,
  );
});
