/**
 * The built-in certificates: the cluster's authority, serving certificates of webhook and agents, and client
 * certificates by which agents recognize webhook and controller. All state is in Secrets.
 *
 * `rotation-plan.ts` plans from the Secrets and the API server's time; `reconcile.ts` carries the plan out, one
 * write at a time.
 *
 * The next leader can continue between any two writes. Watches report deleted, damaged or replaced Secrets.
 */
import { ownNames } from '../../../names/keys.ts';
import { paths } from '../../../kube/api/paths.ts';
import { watchNamed } from '../../../kube/watch/reflector.ts';
import type { Configuration } from '../../../policy/configuration/configuration.ts';
import type { Feature, LeaderContext } from '../../lead/feature.ts';
import { timesOf, type Times } from '../../../certificates/clock-agreement.ts';
import { gauge } from '../../../telemetry/metrics.ts';
import { certificateNames, leafSpecs } from './leaves.ts';
import { certificatesIssued, createReconciler } from './reconcile.ts';
import type { Found } from './rotation-plan.ts';

/** Checks everything at least so often, and while programs settle: what is due, and if a clock jumped. */
const intervalMs = 10 * 60_000;
const looksPerSettling = 4;
const key = 'certificates';

const certificateExpiresIn = gauge(
  'archwright_certificate_expires_in_seconds',
  'Time until a built-in certificate expires; NaN if another replica leads.',
  { certificate: certificateNames },
);

/**
 * Issues and rotates certificates while this replica leads, unless `certificates` is `external`.
 * @param times instead of those that follow from the settings; for tests
 */
export const certificatesWith = (times?: Times): Feature => ({
  name: 'certificates',
  metrics: [certificateExpiresIn, certificatesIssued],
  isOn: ({ configuration }) => configuration().certificates !== 'external',
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
    const showExpiry = createExpiry(leader);
    const inForce = times ?? timesOf(configuration.certificateTime);
    const reconcile = createReconciler(leader, inForce);
    const requeueAfterMs = Math.min(intervalMs, inForce.settleMs / looksPerSettling);
    // Not a cache: keys of Secrets are not kept in memory.
    const path = paths.secrets(namespace);
    const common = { client, path, log, clock, trim: () => true, onChange: () => enqueue(key) };
    const watches = secretNames(configuration).map((name) => watchNamed({ ...common, name }));
    leader.webhooks?.onChange(() => enqueue(key));
    return {
      keys: () => [key],
      reconcile: async () => {
        const { found, wrote } = await reconcile();
        showExpiry(found);
        return { wrote, requeueAfterMs };
      },
      close: () => {
        for (const watch of watches) watch.stop();
        showExpiry(undefined);
      },
    };
  },
});

/** @returns shows when each certificate expires. A missing or unknown one is NaN: 0 would mean expired */
function createExpiry({ metrics, serverNow }: LeaderContext): (now: Found | undefined) => void {
  let found: Found | undefined;
  const gauges = certificateNames.map(
    (certificate) => [certificate, metrics.gauge(certificateExpiresIn, { certificate })] as const,
  );
  const show = (): void => {
    for (const [name, each] of gauges) {
      const { authorities, leaves = [] } = found ?? {};
      const holder = name === 'ca' ? authorities?.newest : leaves.find((leaf) => leaf.name === name);
      const end = holder?.certificate?.to;
      each.set(end === undefined ? Number.NaN : Math.round((end - serverNow()) / 1000));
    }
  };
  metrics.beforeScrape(show);
  return (now) => {
    found = now;
    show();
  };
}

/** The CA's is the last: while it exists, a later run of clean recognizes the rest of an interrupted one. */
function secretNames(configuration: Configuration): readonly string[] {
  const leaves = leafSpecs(configuration, []).map(({ secretName }) => secretName);
  return [...leaves, ownNames(configuration).caSecret];
}

export const certificates = certificatesWith();
