/** Thousands of pods at once: one lookup per image, one patch per pod, no namespace delays another. */
import t from 'tap';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { sized } from '../../../support/exhaustive.ts';
import { gated, newStore, path, startGates } from './support.ts';

const count = sized(1000, 10_000);
/** One namespace has a third of the 512 lookups at one registry. */
const images = sized(100, 150);
/** A registry that has given no facts yet gets fewer lookups. */
const proven = { known: 'arm64' };

t.test(`${count} pods of ${images} images: one lookup per image, one patch per pod`, async (t) => {
  const time = createFakeClock();
  const store = await newStore(t, time);
  for (let index = 0; index < count; index += 1) {
    const name = `p${index}`;
    store.put(path(name), gated(name, [`image-${index % images}`]));
  }
  const gates = await startGates(t, [], { store, time, known: proven });
  await store.until(() => gates.open === images);
  t.equal(gates.lookups.length, images);
  gates.known = Object.fromEntries(Array.from({ length: images }, (_, index) => [`image-${index}`, 'arm64']));
  gates.answer();
  for (let turn = 0; turn < 30 && store.writes().length < count; turn += 1)
    await store.until(() => store.writes().length >= Math.min(count, (turn + 1) * 500));
  await store.until(() => gates.steps.length === 2 * count);
  t.equal(store.writes().length, count);
  t.equal(gates.lookups.length, images);
  const left = store
    .list('/api/v1/namespaces/shop/pods')
    .filter(({ spec }) => (spec as { schedulingGates: unknown[] }).schedulingGates.length > 1);
  t.equal(left.length, 0);
});

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
