/** A cluster to clean. Time passes only while no request is in progress and all code waits for time. */
import type { Test } from 'tap';
import { clean } from '../../src/clean/clean.ts';
import type { CleanOptions, CleanReport } from '../../src/clean/run.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { defaultConfiguration, type Configuration } from '../../src/policy/configuration/configuration.ts';
import { keys } from '../../src/names/keys.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { connectedStore } from '../kube/support.ts';
import type { KubeStore } from '../support/kube-store.ts';
import { neverAborted } from '../support/never-aborted.ts';

export const leasePath = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller';
export const webhooksPath = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright';

export type World = Awaited<ReturnType<typeof world>>;

export async function world(t: Test) {
  const clock = createFakeClock();
  const start = clock.now();
  let inFlight = 0;
  const lines: string[] = [];
  const { store, client: real } = await connectedStore(t, { now: clock.now });

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
    serverNow: clock.now,
  };
  const defaults: CleanOptions = {
    client,
    namespace: 'archwright',
    configuration: defaultConfiguration(),
    dryRun: false,
    restartPods: false,
    progress: (line) => void lines.push(line),
    signal: neverAborted,
    clock,
  };

  return {
    store,
    clock,
    lines,
    elapsed: (): number => clock.now() - start,
    clean: async (
      options: Partial<CleanOptions> = {},
      configuration: Partial<Configuration> = {},
      run: (options: CleanOptions) => Promise<CleanReport> = clean,
    ): Promise<CleanReport> => {
      const merged = { ...defaults, configuration: { ...defaults.configuration, ...configuration } };
      const ended = new AbortController();
      const running = run({ ...merged, ...options }).finally(() => ended.abort());
      const drive = async (): Promise<void> => {
        while (!ended.signal.aborted) {
          await new Promise((resolve) => setImmediate(resolve));
          if (inFlight === 0) await clock.advanceToNext();
        }
      };
      const [report] = await Promise.all([running, drive()]);
      return report;
    },
  };
}

export const podPath = (name: string, namespace = 'shop'): string =>
  `/api/v1/namespaces/${namespace}/pods/${name}`;

export function gated(...others: string[]): object {
  return { spec: { containers: [], schedulingGates: [...others, keys.gate].map((name) => ({ name })) } };
}

export function gatesOf(store: KubeStore, name: string): string[] | undefined {
  const spec = store.get(podPath(name))?.spec as { schedulingGates?: { name: string }[] } | undefined;
  return spec?.schedulingGates?.map((gate) => gate.name);
}

/** A Lease with a holder. */
export function heldBy(holderIdentity: string, renewedAgoMs = 0): object {
  return {
    spec: {
      holderIdentity,
      leaseDurationSeconds: 15,
      leaseTransitions: 3,
      renewTime: new Date(createFakeClock().now() - renewedAgoMs).toISOString().replace('Z', '000Z'),
    },
  };
}

export function holderOf(store: KubeStore): string | undefined {
  return (store.get(leasePath)?.spec as { holderIdentity?: string } | undefined)?.holderIdentity;
}

export function stepIn(report: CleanReport, name: string): CleanReport['steps'][number] | undefined {
  return report.steps.find(({ step }) => step === name);
}

export function done(report: CleanReport): Record<string, number> {
  return Object.fromEntries(
    report.steps.filter(({ done }) => done > 0).map(({ step, done }) => [step, done]),
  );
}
