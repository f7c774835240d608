import t from 'tap';
import { LargeObjects } from '../../../src/kube/watch/store.ts';

const text = (bytes: number) => ({ text: 'x'.repeat(bytes) });

t.test('a namespace may use as many bytes as are still free', async (t) => {
  const objects = new LargeObjects(1_006_000);
  const most = (namespace: string): number => {
    let count = 0;
    while (objects.add(`${namespace}/pod-${count}`, text(10_000))) count += 1;
    return count;
  };
  t.strictSame(['a', 'b', 'c'].map(most), [50, 25, 12]);
  t.equal(objects.refused, 3);
  t.ok(objects.add('d/pod', text(100_000)), 'another namespace has room');
  objects.delete('a/pod-0');
  objects.delete('a/pod-0');
  objects.delete('a/unknown');
  t.equal(objects.add('a/pod-50', text(10_000)), false, 'other namespaces used the free bytes');
  for (let index = 0; index < 30; index += 1) objects.delete(`a/pod-${index}`);
  t.ok(objects.add('a/pod-50', text(10_000)));
  t.equal(objects.refused, 2, 'it fits now');
});

t.test('small objects do not count, objects with many small values do', async (t) => {
  const objects = new LargeObjects(100_000);
  const added = Array.from({ length: 1000 }, (_, index) => objects.add(`a/${index}`, text(5000)));
  t.ok(added.every(Boolean));
  t.equal(
    objects.add(
      'a/values',
      Array.from({ length: 2000 }, () => ({})),
    ),
    false,
  );
  t.ok(objects.add('b/object', text(20_000)));
  t.ok(objects.add('b/object', text(30_000)), 'an object is replaced');
  t.ok(objects.add('b/object', text(40_000)));
  t.equal(objects.refused, 1);
});
