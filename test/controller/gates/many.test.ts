/** Thousands of pods at once: bounded lookups, bounded work, one patch per pod. */
import { setImmediate as settled } from 'node:timers/promises';
import t from 'tap';
import type { FactsByImage, FactsOfPod, FactsWanted } from '../../../src/cluster/facts-of-pod.ts';
import { GateLookups, type LookupListener } from '../../../src/controller/gates/lookups.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { sized } from '../../support/exhaustive.ts';
import { facts } from '../../support/placement-input.ts';
import { gated, newStore, path, startGates } from './support.ts';
import { silentLog } from '../../support/captured.ts';

const count = sized(1000, 10_000);
const images = sized(100, 200);

t.test(`${count} pods of ${images} images: one lookup per image, one patch per pod`, async (t) => {
  const time = createFakeClock();
  const store = await newStore(t, time);
  for (let index = 0; index < count; index += 1) {
    const name = `p${index}`;
    store.put(path(name), gated(name, [`image-${index % images}`]));
  }
  let writing = 0;
  let most = 0;
  store.fault(/^PATCH /u, { before: () => void (most = Math.max(most, ++writing)) });
  const gates = await startGates(t, [], {
    store,
    time,
    configuration: { gateWorkers: 32 },
    step: (name) => {
      if (name === 'gates/opened') writing -= 1;
    },
  });
  await store.until(() => gates.open === images);
  t.equal(gates.lookups.length, images);
  gates.known = Object.fromEntries(Array.from({ length: images }, (_, index) => [`image-${index}`, 'arm64']));
  gates.answer();
  for (let turn = 0; turn < 30 && store.writes().length < count; turn += 1)
    await store.until(() => store.writes().length >= Math.min(count, (turn + 1) * 500));
  await store.until(() => gates.steps.length === 2 * count);
  t.equal(store.writes().length, count);
  t.equal(gates.lookups.length, images);
  t.ok(most <= 32, `${most} at the same time`);
  const left = store
    .list('/api/v1/namespaces/shop/pods')
    .filter(({ spec }) => (spec as { schedulingGates: unknown[] }).schedulingGates.length > 1);
  t.equal(left.length, 0);
});

interface Lookup {
  readonly wanted: FactsWanted;
  readonly resolve: (facts: FactsByImage) => void;
}

function wanted(image: string, more: Partial<FactsWanted> = {}): FactsWanted {
  return {
    uses: [{ image, usedBy: ['c'], pullPolicy: 'IfNotPresent', volumeOnly: false }],
    namespace: 'shop',
    pullSecrets: { names: [] },
    serviceAccount: { namespace: 'shop', name: 'default' },
    budgetMs: 100,
    ...more,
  };
}

function setupLookups(maxOpen: number) {
  const lookups: Lookup[] = [];
  const answered: string[] = [];
  const turns: string[] = [];
  const time = createFakeClock();
  const factsOfPod: FactsOfPod = (what) => new Promise((resolve) => lookups.push({ wanted: what, resolve }));
  const listener: LookupListener = {
    onFacts: (key, found) => void answered.push(`${key}: ${[...found.keys()].join()}`),
    onTurn: (key) => void turns.push(key),
  };
  const leading = { factsOfPod, log: silentLog, clock: time };
  const it = new GateLookups(leading, listener, maxOpen);
  return { it, lookups, answered, turns, time };
}

t.test('the same images and credentials share a lookup; other credentials do not', async (t) => {
  const { it, lookups, answered } = setupLookups(20);
  it.find('a', wanted('web'));
  it.find('b', wanted('web'));
  it.find('b', wanted('web'));
  it.find('c', wanted('web', { pullSecrets: { names: ['registry'] } }));
  it.find('d', wanted('web', { namespace: 'other' }));
  it.find('e', wanted('web', { serviceAccount: { namespace: 'shop', name: 'robot' } }));
  it.find('f', wanted('web', { budgetMs: 5 }));
  t.equal(lookups.length, 5);
  lookups[0]?.resolve(new Map([['web', facts('arm64')]]));
  await settled();
  t.same(answered, ['a: web', 'b: web']);
  it.find('a', wanted('web'));
  t.equal(lookups.length, 6, 'a new lookup, because the first has ended');
});

t.test('lookups beyond the limit wait for their turn, except urgent ones', async (t) => {
  const { it, lookups, turns } = setupLookups(6);
  for (const image of ['a', 'b', 'c', 'd', 'e']) it.find(image, wanted(image));
  t.equal(lookups.length, 2, 'one namespace gets a third of the limit');
  it.find('f', wanted('f'), true);
  t.equal(lookups.length, 3);
  lookups[0]?.resolve(new Map());
  await settled();
  t.same(turns, ['c']);
  lookups[1]?.resolve(new Map());
  await settled();
  t.same(turns, ['c', 'd', 'e'], 'an unused turn does not block the next');
});

t.test('one namespace does not delay the pods of others', async (t) => {
  const { it, lookups, turns } = setupLookups(9);
  const of = (namespace: string, image: string): void =>
    void it.find(`${namespace}/${image}`, wanted(image, { namespace }));
  for (const image of ['a', 'b', 'c', 'd', 'e']) of('busy', image);
  of('shop', 'a');
  const namespaces = lookups.map(({ wanted: { namespace } }) => namespace);
  t.same(namespaces, ['busy', 'busy', 'busy', 'shop']);
  for (const image of ['b', 'c']) of('shop', image);
  lookups[0]?.resolve(new Map());
  await settled();
  t.same(turns, ['shop/b'], 'the namespace with fewer lookups comes first');
  lookups[1]?.resolve(new Map());
  await settled();
  t.same(turns, ['shop/b', 'busy/d', 'shop/c'], 'round robin');
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
  const gates = await startGates(t, hostile, { store, time });
  // Eight busy namespaces leave about half of the 1,024 places.
  await store.until(() => gates.open >= 400);
  const before = gates.open;
  store.put(path('web'), gated('web', ['shop/web']));
  await store.until(() => gates.lookups.some(({ namespace }) => namespace === 'shop'));
  gates.known = { 'shop/web': 'arm64' };
  gates.answer('shop/web');
  await gates.opened(1);
  t.notOk(gates.isGated('web'));
  t.ok(gates.open >= before, 'the lookups of the attacker still hang');
});

t.test('a lookup times out, and its late response is ignored', async (t) => {
  const { it, lookups, answered, time } = setupLookups(2);
  it.find('a', wanted('web'));
  await time.advance(2099);
  t.same(answered, []);
  await time.advance(1);
  t.same(answered, ['a: ']);
  lookups[0]?.resolve(new Map([['web', facts('arm64')]]));
  await settled();
  t.same(answered, ['a: ']);
  it.find('b', wanted('web'));
  t.equal(lookups.length, 2, 'a new lookup, because the first has timed out');
  it.stop();
  await time.advance(10_000);
  t.same(answered, ['a: '], 'no response after stop');
});
