/** A cluster to clean, and a clock that goes on by itself whenever everybody waits for it. */
import type { Test } from 'tap';
import { clean, type CleanOptions, type CleanReport } from '../../../src/controller/clean/clean.ts';
import { createKubeClient, type KubeClient } from '../../../src/kube/api/client.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import type { Configuration } from '../../../src/policy/configuration/configuration.ts';
import { keys } from '../../../src/names/keys.ts';
import { startKubeStore, type KubeStore } from '../../support/kube-store.ts';
import { noTimers } from '../../support/fake-clock.ts';

export const leasePath = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller';
export const webhooksPath = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright';
export const epoch = Date.parse('2026-01-01T00:00:00Z');

export interface World {
  readonly store: KubeStore;
  readonly client: KubeClient;
  /** Milliseconds since the start. */
  readonly elapsed: () => number;
  readonly clean: (
    options?: Partial<CleanOptions>,
    configuration?: Partial<Configuration>,
  ) => Promise<CleanReport>;
  readonly lines: string[];
}

export async function world(t: Test): Promise<World> {
  let now = 0;
  let inFlight = 0;
  const sleepers: { readonly at: number; readonly resolve: () => void }[] = [];
  const lines: string[] = [];
  const store = await startKubeStore({ now: () => epoch + now });
  const real = createKubeClient({ access: store.access, userAgent: 'test' });
  t.teardown(async () => {
    real.close();
    await store.close();
  });

  async function counted<T>(call: Promise<T>): Promise<T> {
    inFlight += 1;
    try {
      return await call;
    } finally {
      inFlight -= 1;
    }
  }

  const client: KubeClient = {
    ...real,
    get: (path, options) => counted(real.get(path, options)),
    create: (path, object, options) => counted(real.create(path, object, options)),
    patch: (path, patch, options) => counted(real.patch(path, patch, options)),
    delete: (path, options) => counted(real.delete(path, options)),
    serverNow: () => epoch + now,
  };

  function sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    return new Promise((resolve, reject) => {
      const sleeper = { at: now + ms, resolve };
      sleepers.push(sleeper);
      const abort = (): void => {
        sleepers.splice(sleepers.indexOf(sleeper), sleepers.includes(sleeper) ? 1 : 0);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', abort, { once: true });
    });
  }

  /** Nothing else is under way when no request is: what goes on without one is over before the next turn. */
  async function drive(isDone: () => boolean): Promise<void> {
    while (!isDone()) {
      await new Promise((resolve) => setImmediate(resolve));
      if (inFlight > 0 || sleepers.length === 0) continue;
      sleepers.sort((a, b) => a.at - b.at);
      const next = sleepers.shift();
      now = Math.max(now, next?.at ?? now);
      next?.resolve();
    }
  }

  return {
    store,
    client,
    lines,
    elapsed: () => now,
    clean: async (options = {}, configuration = {}) => {
      let isDone = false;
      const running = clean({
        client,
        limiter: { take: () => Promise.resolve(), pause: () => undefined },
        namespace: 'archwright',
        configuration: { ...defaultConfiguration(), ...configuration },
        dryRun: false,
        restartPods: false,
        progress: (line) => void lines.push(line),
        signal: new AbortController().signal,
        clock: { ...noTimers, now: () => epoch + now, monotonic: () => now },
        sleep,
        ...options,
      }).finally(() => {
        isDone = true;
      });
      const [report] = await Promise.all([running, drive(() => isDone)]);
      return report;
    },
  };
}

export const podPath = (name: string, namespace = 'shop'): string =>
  `/api/v1/namespaces/${namespace}/pods/${name}`;

/** A pod that waits behind gates. */
export function gated(...others: string[]): object {
  return { spec: { containers: [], schedulingGates: [...others, keys.gate].map((name) => ({ name })) } };
}

export function gatesOf(store: KubeStore, name: string): string[] | undefined {
  const spec = store.get(podPath(name))?.spec as { schedulingGates?: { name: string }[] } | undefined;
  return spec?.schedulingGates?.map((gate) => gate.name);
}

/** A Lease that somebody holds. */
export function heldBy(holderIdentity: string, renewedAgoMs = 0): object {
  return {
    spec: {
      holderIdentity,
      leaseDurationSeconds: 15,
      leaseTransitions: 3,
      renewTime: new Date(epoch - renewedAgoMs).toISOString().replace('Z', '000Z'),
    },
  };
}

export function holderOf(store: KubeStore): string | undefined {
  return (store.get(leasePath)?.spec as { holderIdentity?: string } | undefined)?.holderIdentity;
}

/** What was done in each step where something was. */
export function done(report: CleanReport): Record<string, number> {
  return Object.fromEntries(
    report.steps.filter(({ done }) => done > 0).map(({ step, done }) => [step, done]),
  );
}
