/** What a feature gets, over an API server with a store: everything real but facts, which the test scripts. */
import type { Test } from 'tap';
import type { FactsOfPod } from '../../src/cluster/facts-of-pod.ts';
import { noPullSecrets } from '../../src/cluster/pull-secrets.ts';
import { startCaches } from '../../src/controller/caches/caches.ts';
import type { Leading } from '../../src/controller/leadership/leading.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { createFactsMemory } from '../../src/images/memory/memory.ts';
import { createKubeClient } from '../../src/kube/api/client.ts';
import type { EventText, ObjectReference } from '../../src/kube/events/events.ts';
import { defaultConfiguration, type Configuration } from '../../src/policy/configuration/configuration.ts';
import { policyFor } from '../../src/policy/effective/effective.ts';
import { systemClock } from '../../src/async/clock.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { startKubeStore, type KubeStore } from '../support/kube-store.ts';

export interface TestLeading {
  readonly leading: Leading;
  readonly store: KubeStore;
  /** Events recorded so far. */
  readonly events: readonly (EventText & { readonly about: ObjectReference })[];
  /** Lines of the log. */
  readonly lines: readonly string[];
  /** Names of the steps that were passed. */
  readonly steps: readonly string[];
  /** The value of a series such as `name{label="value"}`; undefined where it is not there. */
  series(name: string): Promise<number | undefined>;
  /** Ends leadership. */
  depose(): void;
}

export interface TestLeadingOptions {
  readonly configuration?: Partial<Configuration>;
  /** By image as the pod writes it; what is not there is unknown. */
  readonly facts?: Readonly<Record<string, ImageFacts>>;
  /** What memory knows at the start. */
  readonly remembered?: readonly ImageFacts[];
  readonly fleet?: Leading['fleet'];
  readonly step?: Leading['step'];
  readonly now?: () => number;
}

/** Starts a store and its caches; all ends with the test. */
export async function startLeading(t: Test, options: TestLeadingOptions = {}): Promise<TestLeading> {
  const store = await startKubeStore(options.now ? { now: options.now } : {});
  t.teardown(() => store.close());
  return leadOver(t, store, options);
}

/** The same over a store that is there already: the next leader. */
export async function leadOver(
  t: Test,
  store: KubeStore,
  options: TestLeadingOptions = {},
): Promise<TestLeading> {
  const lines: string[] = [];
  const log = createLog({ level: 'debug', destination: { write: (line) => void lines.push(line) } });
  const metrics = createMetrics();
  const client = createKubeClient({ access: store.access, userAgent: 'test' });
  const caches = startCaches({ client, log, metrics });
  const ending = new AbortController();
  const events: (EventText & { about: ObjectReference })[] = [];
  const steps: string[] = [];
  const configuration = { ...defaultConfiguration(), namespace: 'archwright', ...options.configuration };
  const inspect = (image: string): ImageFacts | undefined => options.facts?.[image];
  const memory = createFactsMemory({
    inspector: { inspect: () => Promise.reject(new Error('no inspector in this test')) },
    log,
  });
  for (const facts of options.remembered ?? []) memory.learn(facts);
  const factsOfPod: FactsOfPod = ({ uses }) =>
    new Map(
      uses.flatMap(({ image }): [string, ImageFacts][] => {
        const facts = inspect(image);
        return facts ? [[image, facts]] : [];
      }),
    );
  t.teardown(async () => {
    ending.abort(new Error('the test has ended'));
    caches.stop();
    await memory.close();
    client.close();
  });
  await caches.ready(AbortSignal.timeout(10_000));
  return {
    store,
    events,
    lines,
    steps,
    series: async (name) => {
      const line = (await metrics.render()).split('\n').find((each) => each.startsWith(`${name} `));
      return line === undefined ? undefined : Number(line.split(' ').at(-1));
    },
    depose: () => ending.abort(new Error('deposed')),
    leading: {
      signal: ending.signal,
      client,
      events: {
        record: (about, event) => void events.push({ ...event, about }),
        flush: () => Promise.resolve(),
      },
      caches,
      fleet: options.fleet,
      memory,
      factsOfPod,
      pullSecrets: { mayHave: () => false, source: () => Promise.resolve(noPullSecrets) },
      policies: { policyOf: () => policyFor(configuration) },
      configuration: () => configuration,
      clock: systemClock,
      serverNow: options.now ?? (() => Date.now()),
      log,
      metrics,
      step: async (name) => {
        steps.push(name);
        await options.step?.(name);
      },
    },
  };
}
