/**
 * The gates feature over an API server with a store, and a real cache of facts. A test answers lookups and
 * advances the clock.
 */
import type { Step } from '../../../support/steps.ts';
import type { Test } from 'tap';
import { gates } from '../../../../src/controller/features/gates/gates.ts';
import { createFactsOfPod } from '../../../../src/cluster/facts-of-pod.ts';
import type { LeaderContext } from '../../../../src/controller/lead/feature.ts';
import { FactsCache } from '../../../../src/images/cache/cache.ts';
import type { ImageFacts, ImageRequest } from '../../../../src/images/facts/facts.ts';
import type { Pod } from '../../../../src/kube/api/objects.ts';
import type { Configuration } from '../../../../src/policy/configuration/configuration.ts';
import { silentLog } from '../../../support/captured.ts';
import { digestOf } from '../../../support/facts.ts';
import { createFakeClock, type FakeClock } from '../../../support/fake-clock.ts';
import { startKubeStore, type KubeStore } from '../../../support/kube-store.ts';
import { factsFrom, isIn, termOf, type Known } from '../../../support/placement-input.ts';
import { lead, startLeader } from '../../leader.ts';
import { podPath as path } from '../../objects.ts';

export const gate = { name: 'arch.example/scheduling-gate' };
export const theirs = { name: 'x.example/theirs' };
export const createdAt = Date.parse('2026-11-01T00:00:00Z');

export interface GatesSetupOptions {
  readonly configuration?: Partial<Configuration>;
  /** Cached at the start, as far as they are no failures. */
  readonly known?: Known;
  readonly step?: Step;
  readonly store?: KubeStore;
  readonly time?: FakeClock;
  readonly change?: (leader: LeaderContext) => LeaderContext;
}

/** A pod as the API server has it, with our gate and another controller's. */
export function gated(name: string, images: readonly string[], spec: object = {}, more: object = {}): Pod {
  const creationTimestamp = new Date(createdAt).toISOString();
  const imagePullPolicy = 'IfNotPresent';
  const containers = images.map((image, index) => ({ name: `c${index}`, image, imagePullPolicy }));
  return {
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, creationTimestamp, ...more },
    spec: { containers, schedulingGates: [theirs, gate], ...spec },
  };
}

export async function newStore(t: Test, time: FakeClock): Promise<KubeStore> {
  const store = await startKubeStore({ isPlain: true, now: () => time.now() });
  t.teardown(() => store.close());
  store.put('/api/v1/namespaces/shop', { metadata: { name: 'shop', labels: {} } });
  return store;
}

/** Starts the feature with these pods. */
export async function startGates(t: Test, pods: readonly Pod[], options: GatesSetupOptions = {}) {
  const time = options.time ?? createFakeClock();
  const store = options.store ?? (await newStore(t, time));
  for (const pod of pods) store.put(path(pod.metadata?.name ?? '', pod.metadata?.namespace), pod);
  const test = await startLeader(t, {
    over: store,
    now: () => time.now(),
    configuration: options.configuration,
    step: async (name) => {
      // `startGates` has returned by then.
      await new Promise((resolve) => setImmediate(resolve));
      await options.step?.(name);
    },
  });
  const lookups: ImageRequest[] = [];
  let held: { readonly image: string; readonly resolve: (facts: ImageFacts) => void }[] = [];
  const setup = { known: options.known ?? {} };

  function factsOf(image: string): ImageFacts | undefined {
    const known = factsFrom(setup.known)(image);
    if (known === undefined) return undefined;
    const confirmedAt = new Date(time.now()).toISOString();
    const digest = digestOf(JSON.stringify([image, known.platforms]));
    return { ...known, image, source: 'registry', confirmedAt, ...(!known.error && { digest }) };
  }

  const cache = new FactsCache({
    // Lookups of unknown images are held.
    source: {
      lookup: (request) => {
        const { image } = request;
        lookups.push(request);
        const facts = factsOf(image);
        if (facts) return Promise.resolve(facts);
        return new Promise((resolve) => held.push({ image, resolve }));
      },
    },
    clock: time,
    log: silentLog,
  });
  t.teardown(() => cache.close());
  for (const image of Object.keys(setup.known)) {
    const facts = factsOf(image);
    if (facts && !facts.error) cache.learn(facts);
  }
  const change = options.change ?? ((leader: LeaderContext) => leader);
  const own = { ...test.leader, cache, clock: time };
  const leader = change({ ...own, factsOfPod: createFactsOfPod({ ...own, cache }) });
  const ended = lead(gates, leader);
  t.teardown(() => {
    test.depose();
    return ended;
  });
  const podNow = (name: string): Pod => {
    const pod = store.get(path(name)) as Pod | undefined;
    if (pod === undefined) throw new Error(`${name} is gone`);
    return pod;
  };
  return {
    ...test,
    time,
    /** The lookups at the source so far. */
    lookups,
    /** Facts that lookups return from now on. */
    get known(): Known {
      return setup.known;
    },
    set known(known: Known) {
      setup.known = known;
    },
    /** Ends the held lookups, or those of an image, if its facts are known now. */
    answer: (image?: string): void => {
      const now = held;
      held = [];
      for (const each of now) {
        const facts = image === undefined || each.image === image ? factsOf(each.image) : undefined;
        if (facts) each.resolve(facts);
        else held.push(each);
      }
    },
    /** Lookups that are held. */
    get open(): number {
      return held.length;
    },
    pod: podNow,
    isGated: (name: string): boolean =>
      podNow(name).spec.schedulingGates?.some(({ name: each }) => each === gate.name) ?? false,
    opened: async (count: number): Promise<void> => {
      const passed = (): number =>
        test.steps.filter((step) => /^after patch .*schedulingGates/u.test(step)).length;
      await store.until(() => passed() >= count, `${count} opened gates`);
      await answersOfServer();
    },
    /** Resolves when the feature has ended. */
    ended,
    /** Lets time pass in steps, and waits for responses of the server in between. */
    pass: async (ms: number): Promise<void> => {
      const end = time.monotonic() + ms;
      while (time.monotonic() < end) {
        await time.advance(Math.min(500, end - time.monotonic()));
        await answersOfServer();
      }
    },
  };
}

/** Requests over loopback take real time. */
async function answersOfServer(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

export { path };
export { termsOf } from '../../../support/placement-input.ts';

export const archIn = (...values: string[]) => termOf(isIn('kubernetes.io/arch', ...values));
