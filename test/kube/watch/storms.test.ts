/**
 * A reflector and a failing server: afterwards the cache equals the store, after a bounded number of
 * requests.
 */
import t, { type Test } from 'tap';
import { startReflector, type Reflector, type ReflectorOptions } from '../../../src/kube/watch/reflector.ts';
import { captureLog } from '../../support/captured.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { createHastyClock } from '../../support/fake-clock.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { sized } from '../../support/exhaustive.ts';
import { connectedStore } from '../support.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const pods = '/api/v1/pods';
const pathOf = (name: string): string => `/api/v1/namespaces/team/pods/${name}`;

async function start(t: Test, timeoutMs = 5_000) {
  const { store, client } = await connectedStore(t, { timeoutMs });
  const clock = createHastyClock();
  const { log, lines } = captureLog('warn');
  return {
    store,
    /** The pauses of the reflectors; they take no time. */
    pauses: clock.sleeps,
    lines,
    reflect: (options: Partial<ReflectorOptions<string>> = {}) => {
      const trim: ReflectorOptions<string>['trim'] = ({ metadata }) => metadata?.labels?.['value'] ?? '';
      const reflector = startReflector<string>({ client, path: pods, trim, log, clock, ...options });
      t.teardown(() => reflector.stop());
      return reflector;
    },
  };
}

function put(store: KubeStore, name: string, value: string): void {
  store.put(pathOf(name), { metadata: { labels: { value } }, spec: {} });
}

function contentOf(store: KubeStore): Map<string, string> {
  return new Map(
    store.list(pods).map((object) => [object.metadata.name, object.metadata.labels?.['value'] ?? '']),
  );
}

function isEqual(reflector: Reflector<string>, store: KubeStore): boolean {
  const content = contentOf(store);
  return (
    reflector.size === content.size &&
    [...content].every(([name, value]) => reflector.get('team', name) === value)
  );
}

void t.test('2,000 objects in pages, with changes between the pages', async (t) => {
  const { store, reflect } = await start(t);
  for (let i = 0; i < 2000; i++) put(store, `pod-${i}`, 'first');
  store.fault(/^GET/, {
    before: () => {
      put(store, 'pod-7', 'second');
      put(store, 'a-new-one', String(store.version()));
      if (store.get(pathOf('pod-9'))) store.remove(pathOf('pod-9'));
    },
  });
  const reflector = reflect();
  const changes: string[] = [];
  reflector.onEach(({ name, object }) => changes.push(`${name} ${object === undefined ? 'gone' : 'there'}`));
  await reflector.ready(neverAborted);
  await store.until(() => isEqual(reflector, store));
  t.equal(reflector.size, 2000);
  t.equal(store.received(`GET ${pods}`).length, 4);
  t.equal(store.connections(), 2, 'one for pages, one for the watch');
  t.equal(new Set(changes).size, 2000);
  t.equal(changes.length, 2006, 'two objects changed before each of the last three pages');
});

void t.test('a list that expires between pages starts again', async (t) => {
  const { store, reflect, pauses } = await start(t);
  for (let i = 0; i < 1200; i++) put(store, `pod-${i}`, 'x');
  let pages = 0;
  store.fault(/^GET/, {
    before: () => {
      if (++pages === 3) store.compact();
    },
  });
  const reflector = reflect();
  await reflector.ready(neverAborted);
  t.equal(reflector.size, 1200);
  t.equal(pages, 6);
  t.equal(pauses.length, 1);
});

void t.test('large objects are listed in smaller pages', async (t) => {
  // A page of 16 MiB takes long on a slow machine, and a timeout would be a failure.
  const { store, reflect, pauses } = await start(t, 600_000);
  const annotations = { large: 'x'.repeat(70_000) };
  for (let i = 0; i < 250; i++)
    store.put(pathOf(`pod-${i}`), { metadata: { labels: { value: 'v' }, annotations }, spec: {} });
  const reflector = reflect();
  await reflector.ready(neverAborted);
  t.equal(reflector.size, 250);
  t.strictSame(pauses, [], 'no failure');
  const limits = store.received(`GET ${pods}`).map(({ query }) => query.get('limit'));
  t.strictSame(limits, ['500', '125', '125']);
});

/** Pseudorandom numbers: a seed repeats its storm. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

for (const seed of [1, 2, 3, 4, 5, 6].slice(0, sized(3, 6))) {
  void t.test(`all faults at random, seed ${seed}`, async (t) => {
    const { store, reflect } = await start(t, 150);
    const pick = generator(seed);
    for (let i = 0; i < 30; i++) put(store, `pod-${i}`, 'first');
    const reflector = reflect({ idleMs: () => 200 });
    const seen = new Map<string, string>();
    const jumps: string[] = [];
    reflector.onEach(({ name, object, previous }) => {
      if (seen.get(name) !== previous) jumps.push(name);
      if (object === undefined) seen.delete(name);
      else seen.set(name, object);
    });
    const storms = [
      () => store.fault(/^(?:GET|WATCH)/, { status: 500, times: 3 }),
      () => store.fault(/^(?:GET|WATCH)/, { status: 429, retryAfter: 1, times: 3 }),
      () => store.fault(/^WATCH/, { status: 410, times: 2 }),
      () => store.fault(/^(?:GET|WATCH)/, { reset: true, times: 3 }),
      () => store.fault(/^(?:GET|WATCH)/, { hang: true, times: 1 }),
      () => store.fault(/^GET/, { lost: true, times: 2 }),
      () => store.cutWatches('end'),
      () => store.cutWatches('reset'),
      () => store.cutWatches('silence'),
      () => store.compact(),
      () => store.dropConnections(),
      () => store.bookmark(),
    ];
    for (let i = 0; i < 60; i++) {
      storms[pick(storms.length)]?.();
      for (let change = pick(6); change > 0; change--) {
        const name = `pod-${pick(40)}`;
        if (pick(3) === 0) store.remove(pathOf(name));
        else put(store, name, `${i}-${change}`);
      }
      if (pick(2) === 0) await store.quiet();
    }
    await store.until(() => isEqual(reflector, store), 'the cache equals the store');
    t.strictSame(seen, contentOf(store));
    t.strictSame(jumps, [], 'the previous object of each change is the last one seen');
    t.ok(store.requests.length < 400, `${store.requests.length} requests`);
  });
}

void t.test('a half-open watch is replaced, and missed events arrive', async (t) => {
  const { store, reflect } = await start(t);
  const reflector = reflect({ idleMs: () => 100 });
  await store.until(() => store.watches() === 1);
  store.cutWatches('silence');
  put(store, 'missed', 'x');
  await store.until(() => reflector.size === 1);
  t.equal(store.received(`GET ${pods}`).length, 1, 'no second list');
});

void t.test('repeated watch errors lead to a new list', async (t) => {
  const { store, reflect, pauses } = await start(t);
  const reflector = reflect();
  await store.until(() => store.watches() === 1);
  const end = store.fault(/^WATCH/, { status: 504, message: 'Too large resource version' });
  store.cutWatches('reset');
  await store.until(() => store.received(`GET ${pods}`).length > 1);
  t.strictSame(pauses.slice(0, 5), [750, 1500, 3000, 6000, 12_000]);
  end();
  put(store, 'later', 'x');
  await store.until(() => reflector.size === 1);
});

void t.test('an object that cannot be trimmed is skipped, and the watch continues', async (t) => {
  const { store, reflect, lines } = await start(t);
  const trim: ReflectorOptions<string>['trim'] = (object) => {
    const value = object.metadata?.labels?.['value'] ?? '';
    if (value === 'hostile') throw new TypeError('cannot read properties');
    return value;
  };
  for (let i = 0; i < 20; i++) put(store, `bad-${i}`, 'hostile');
  put(store, 'good', 'x');
  const reflector = reflect({ trim });
  await reflector.ready(neverAborted);
  t.equal(reflector.size, 1);
  t.match(lines[0], /cannot be read/);
  t.match(lines[0], /bad-/);
  t.equal(lines.length, 5, 'of 20, the 1st, 2nd, 4th, 8th and 16th are logged');
  await store.until(() => store.watches() === 1);
  put(store, 'good', 'hostile');
  put(store, 'another', 'y');
  await store.until(() => reflector.get('team', 'another') === 'y');
  t.equal(reflector.get('team', 'good'), undefined, 'the older version is outdated');
  t.equal(store.received(/^WATCH/).length, 1);
});

void t.test('after stop no request is sent and no listener is called', async (t) => {
  const moments: [string, (store: KubeStore) => void, (store: KubeStore) => boolean][] = [
    ['list', (store) => void store.fault(/^GET/, { hang: true }), (store) => store.requests.length === 1],
    [
      'second page',
      (store) => {
        for (let i = 0; i < 600; i++) put(store, `pod-${i}`, 'x');
        store.fault((request) => request.query.has('continue'), { hang: true });
      },
      (store) => store.requests.length === 2,
    ],
    [
      'connecting watch',
      (store) => void store.fault(/^WATCH/, { hang: true }),
      (store) => store.requests.length === 2,
    ],
    ['open watch', () => undefined, (store) => store.watches() === 1],
    ['pause', (store) => void store.fault(/^GET/, { status: 500 }), (store) => store.requests.length === 1],
  ];
  for (const [moment, prepare, isThere] of moments) {
    const { store, reflect } = await start(t);
    prepare(store);
    const reflector = reflect(moment === 'pause' ? { clock: createHastyClock(() => false) } : {});
    const waiting = reflector.ready(neverAborted).then(
      () => 'ready',
      (error: Error) => error.message,
    );
    let calls = 0;
    reflector.onChange(() => calls++);
    reflector.onEach(() => calls++);
    await store.until(() => isThere(store));
    await store.quiet();
    const before = { calls, requests: store.requests.length };
    reflector.stop();
    put(store, 'late', 'x');
    store.bookmark();
    await store.quiet();
    t.strictSame({ calls, requests: store.requests.length }, before, moment);
    t.equal(store.watches(), 0);
    t.equal(reflector.health().watching, false);
    t.equal(await waiting, moment.includes('watch') ? 'ready' : 'stopped');
  }
});

void t.test('after a listener stops the reflector, other listeners are not called', async (t) => {
  const { store, reflect } = await start(t);
  for (let i = 0; i < 10; i++) put(store, `pod-${i}`, 'x');
  const reflector = reflect();
  let calls = 0;
  reflector.onEach(() => {
    calls++;
    reflector.stop();
  });
  reflector.onChange(() => calls++);
  await store.until(() => calls > 0);
  await store.quiet();
  t.equal(calls, 1);
});

void t.test('metrics count watches by state and restarts by reason', async (t) => {
  const { store, reflect } = await start(t);
  const metrics = createMetrics();
  const end = store.fault(/^GET/, {
    before: () => new Promise((resolve) => void opened.promise.then(resolve)),
  });
  const opened = Promise.withResolvers<void>();
  const first = reflect({ metrics });
  const second = reflect({ metrics, path: '/api/v1/configmaps' });
  const watches = (resource: string, state: string, count: number): string =>
    `archwright_kube_watches{resource="${resource}",state="${state}"} ${count}\n`;
  t.ok((await metrics.render()).includes(watches('pods', 'starting', 1)));
  opened.resolve();
  end();
  await store.until(() => store.watches() === 2);
  await store.until(() => first.health().watching && second.health().watching);
  t.ok((await metrics.render()).includes(watches('pods', 'open', 1)));
  t.ok((await metrics.render()).includes(watches('other', 'open', 1)));
  store.fault(/^WATCH/, { status: 403, times: 1 });
  store.cutWatches('end', pods);
  await store.until(() => store.received(`WATCH ${pods}`).length === 3);
  t.equal(store.received(`GET ${pods}`).length, 2, 'after a refused watch it lists again');
  const hold = store.fault(/^WATCH/, { hang: true });
  store.cutWatches('reset', pods);
  await store.until(() => store.received(`WATCH ${pods}`).length === 4);
  const page = await metrics.render();
  t.ok(page.includes(watches('pods', 'broken', 1)));
  for (const [reason, count] of [
    ['ended', 1],
    ['refused', 1],
    ['unavailable', 1],
    ['gone', 0],
  ] as const) {
    t.match(page, `archwright_kube_watch_restarts_total{resource="pods",reason="${reason}"} ${count}\n`);
  }
  hold();
  first.stop();
  t.ok((await metrics.render()).includes(watches('pods', 'broken', 0)));
});
