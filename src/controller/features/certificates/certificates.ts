/**
 * The built-in certificates: the cluster's authority, serving certificates of webhook and agents, and client
 * certificates by which agents recognize webhook and controller. All state is in Secrets.
 *
 * `rotation-plan.ts` plans from the Secrets and the API server's time; `reconcile.ts` carries the plan out, one
 * write at a time.
 *
 * The next leader can continue between any two writes. Watches report deleted, damaged or replaced Secrets.
 */
import { ownNames } from '../../../names/own-names.ts';
import { paths } from '../../../kube/api/paths.ts';
import { watchNamed } from '../../../kube/watch/reflector.ts';
import type { Configuration } from '../../../policy/configuration/configuration.ts';
import type { Feature } from '../../lead/feature.ts';
import { createWritePause } from '../../write/write-pause.ts';
import { timesOf, type Times } from '../../../certificates/clock-agreement.ts';
import { leafSpecs } from './leaves.ts';
import { certificateMetrics, showExpiry } from './metrics.ts';
import { CertificateReconciler } from './reconcile.ts';

/** Rechecks everything, whatever the watches report: the wall clock may have jumped. */
const intervalMs = 10 * 60_000;
const key = 'certificates';

/**
 * Issues and rotates certificates while this replica leads, unless `certificates` is `external`.
 * @param times instead of those that follow from the settings; for tests
 */
export const certificatesWith = (times?: Times): Feature => ({
  name: 'certificates',
  metrics: certificateMetrics,
  isOn: ({ certificates }) => certificates !== 'external',
  inRounds: true,
  leftovers: {
    objects: (configuration) =>
      configuration.certificates === 'external'
        ? []
        : secretNames(configuration).map((name) => ({ kind: 'Secret', name })),
  },
  // It needs no cache, and must work before the others can.
  ready: () => Promise.resolve(),
  start: (leader, enqueue) => {
    const { client, namespace, clock, log } = leader;
    const configuration = leader.configuration();
    const expiry = showExpiry(leader);
    const pauseAfterWrite = createWritePause(clock);
    const work = new CertificateReconciler(leader, times ?? timesOf(configuration.certificateTime));
    // Not a cache: keys of Secrets are not kept in memory.
    const path = paths.secrets(namespace);
    const common = { client, path, log, clock, trim: () => true, onChange: () => enqueue(key) };
    const watches = secretNames(configuration).map((name) => watchNamed({ ...common, name }));
    leader.webhooks?.onChange(() => enqueue(key));
    return {
      keys: () => [key],
      reconcile: async (_, stopping) => {
        const { found, wrote, nextMs } = await work.reconcile();
        expiry.show(found);
        if (wrote) await pauseAfterWrite(stopping);
        return { requeueAfterMs: Math.min(nextMs, intervalMs) };
      },
      close: () => {
        for (const watch of watches) watch.stop();
        expiry.end();
      },
    };
  },
});

/** The CA's is the last: while it exists, a later run of clean recognizes the rest of an interrupted one. */
function secretNames(configuration: Configuration): readonly string[] {
  const leaves = leafSpecs(configuration, []).map(({ secretName }) => secretName);
  return [...leaves, ownNames(configuration).caSecret];
}

export const certificates = certificatesWith();
