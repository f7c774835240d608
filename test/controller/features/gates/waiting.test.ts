/** Many gated pods: those beyond the bounds of the cache are read again, and no namespace delays another. */
import t from 'tap';
import { isIn, requiring, termOf } from '../../../support/placement-input.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { gated, newStore, path, startGates, termsOf, theirs } from './support.ts';
import { like } from '../../../support/like.ts';

const mebibyte = 1024 * 1024;

/** The cache holds two pods of a mebibyte per namespace, and 16 MiB of large waiting pods in total. */
const large = Array.from({ length: 16 }, (_, index) => {
  const values = Array.from({ length: 1024 }, (_, each) => `${index}-${each}-`.padEnd(1024, 'v'));
  const spec = requiring(termOf(isIn('zone', ...values)));
  return gated(`large-${String(index).padStart(2, '0')}`, ['both'], spec);
});

t.test('pods that exceed the bounds are placed, a few per second', async (t) => {
  const gates = await startGates(t, [...large, gated('small', ['both'])], { known: { both: 'amd64 arm64' } });
  const refused = (await gates.series('archwright_controller_large_objects{watch="waitingPods"}')) ?? 0;
  t.ok(refused >= 8, `${refused} pods`);
  await gates.opened(large.length - refused + 1);
  t.notOk(gates.isGated('small'));
  await gates.pass(25_000);
  await gates.opened(large.length + 1);
  const reads = gates.store.received(/^GET .*\/pods\/large-/);
  t.equal(reads.length, refused, 'one read per pod');
  for (const { metadata } of large) {
    const pod = gates.pod(metadata?.name ?? '');
    const [term] = termsOf(pod) ?? [];
    t.equal(JSON.stringify(term).length > mebibyte, true, 'its own affinity stays');
    like(t, term?.matchExpressions?.at(-1), isIn('kubernetes.io/arch', 'amd64', 'arm64'));
    t.strictSame(pod.spec.schedulingGates, [theirs]);
  }
});

t.test('a pod beyond the bounds that is not found, although the cache has it, is read again', async (t) => {
  const gates = await startGates(t, [...large, gated('small', ['both'])]);
  const end = gates.store.fault(/^GET .*\/pods\/large-/, { status: 404 });
  gates.known = { both: 'amd64' };
  gates.answer();
  await gates.pass(30_000);
  t.ok(gates.isGated('large-15'));
  t.notOk(gates.isGated('small'));
  const { length: reads } = gates.store.received(/^GET .*\/pods\/large-/);
  end();
  // Reading a large pod takes real time, so no number of seconds of the fake clock is enough.
  await gates.store.until(async () => {
    await gates.pass(1000);
    return !gates.isGated('large-15');
  });
  t.ok(reads < 100, `${reads} reads in half a minute`);
});

/** A registry that has given no facts yet gets fewer lookups. */
const proven = { known: 'arm64' };

t.test('attack: gated pods of eight namespaces with hanging lookups do not delay other pods', async (t) => {
  const hostile = Array.from({ length: 8 * 100 }, (_, index) =>
    gated(`p${index}`, [`tar/pit-${index}`], {}, { namespace: `attacker-${index % 8}` }),
  );
  const time = createFakeClock();
  const store = await newStore(t, time);
  for (let index = 0; index < 8; index += 1)
    store.put(`/api/v1/namespaces/attacker-${index}`, {
      metadata: { name: `attacker-${index}`, labels: {} },
    });
  const gates = await startGates(t, hostile, { store, time, known: proven });
  // Eight busy namespaces leave about half of the 512 places for lookups at one registry.
  await store.until(() => gates.open >= 200);
  const before = gates.open;
  store.put(path('web'), gated('web', ['shop/web']));
  await store.until(() => gates.lookups.some(({ namespace }) => namespace === 'shop'));
  gates.known = { 'shop/web': 'arm64' };
  gates.answer('shop/web');
  await gates.opened(1);
  t.notOk(gates.isGated('web'));
  t.ok(gates.open >= before, 'the lookups of the attacker still hang');
});
