/** Gated pods that the cache has no room for are read again, and decided as any other. */
import t from 'tap';
import { archIn, gated, startGates, termsOf, theirs } from './support.ts';

const mebibyte = 1024 * 1024;

/** Two pods of a megabyte have room in a namespace; the waiting pods of all have 16 MiB for large ones. */
const large = Array.from({ length: 16 }, (_, index) => {
  const values = Array.from({ length: 1024 }, (_, each) => `${index}-${each}-`.padEnd(1024, 'v'));
  const terms = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values }] }] };
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } };
  return gated(`large-${String(index).padStart(2, '0')}`, ['both'], { affinity });
});

t.test('pods without room are placed, some of them a second', async (t) => {
  const gates = await startGates(t, [...large, gated('small', ['both'])], { known: { both: 'amd64 arm64' } });
  const refused = (await gates.series('archwright_controller_large_objects{watch="waitingPods"}')) ?? 0;
  t.ok(refused >= 8, `${refused} pods`);
  await gates.opened(large.length - refused + 1);
  t.notOk(gates.isGated('small'));
  await gates.pass(25_000);
  await gates.opened(large.length + 1);
  const reads = gates.store.asked(/^GET .*\/pods\/large-/);
  t.equal(reads.length, refused, 'one read for each');
  for (const { metadata } of large) {
    const pod = gates.pod(metadata?.name ?? '');
    const [term] = termsOf(pod) as [{ readonly matchExpressions: readonly object[] }];
    t.equal(JSON.stringify(term).length > mebibyte, true, 'its own affinity stays');
    t.match(term.matchExpressions.at(-1), archIn('amd64', 'arm64').matchExpressions[0]);
    t.same(pod.spec.schedulingGates, [theirs]);
  }
});

t.test('a pod without room that is gone when it is read is forgotten', async (t) => {
  const gates = await startGates(t, [...large, gated('small', ['both'])]);
  gates.store.fault(/^GET .*\/pods\/large-/, { status: 404 });
  gates.known = { both: 'amd64' };
  gates.answer();
  await gates.pass(30_000);
  t.ok(gates.isGated('large-15'));
  t.notOk(gates.isGated('small'));
});
