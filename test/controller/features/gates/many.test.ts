/** Hundreds of pods at once: no namespace delays another. */
import t from 'tap';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { gated, newStore, path, startGates } from './support.ts';

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
