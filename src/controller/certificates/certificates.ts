/**
 * The built-in certificates: the cluster's own authority and what it signs. These are the serving certificates of webhook and agents, and the
 * client certificates by which agents recognize webhook and controller. All state is in Secrets.
 *
 * - `rotation-plan.ts`: the plan, from the content of the Secrets and the API server's time.
 * - `reconcile.ts`: carries the plan out, one write at a time.
 * - `authorities.ts`, `leaves.ts`: the content of the Secrets; what is wrong with a certificate.
 * - `issue.ts` issues certificates. `secrets.ts` reads and writes Secrets.
 * - `client-certificate.ts`: each controller's own copy of its client certificate, leading or not.
 *
 * If a leader stops between two writes, the next one continues. Watches notice a Secret that is deleted, damaged or replaced by hand.
 */
import { watchNamed } from '../../kube/watch/named-watch.ts';
import { paths } from '../../kube/api/paths.ts';
import type { Feature, Leading } from '../leadership/leading.ts';
import { createReconciler } from '../reconcile/reconciler.ts';
import { createWritePause } from '../reconcile/write-pause.ts';
import { readWebhooksFile, webhookNamesOf, type Webhook } from '../webhook-configuration/webhooks-file.ts';
import { leafSpecs, type LeafSpec } from './leaves.ts';
import { countIssues, ExpiryGauges } from './metrics.ts';
import { CertificateReconciler } from './reconcile.ts';
import { timesOf, type Times } from './rotation-plan.ts';
import { createSecrets } from './secrets.ts';

export interface CertificatesOptions {
  /** Instead of those that follow from the settings; for tests. */
  readonly times?: Times;
}

/** Everything is checked again after this time, whatever the watches report: the wall clock may have jumped. */
const intervalMs = 10 * 60_000;
const key = 'certificates';

/** Issues and rotates certificates while this replica leads, if `certificates` is `builtin`. */
export function certificates(options: CertificatesOptions = {}): Feature {
  return async (leading) => {
    const { certificates, namespace } = leading.configuration();
    if (certificates !== 'builtin') return;
    if (namespace === undefined)
      leading.log.error('certificates are not issued: set namespace, the namespace of archwright');
    else await run(leading, options, namespace);
  };
}

async function run(leading: Leading, options: CertificatesOptions, namespace: string): Promise<void> {
  const { signal, client, clock, log } = leading;
  const configuration = leading.configuration();
  const expiry = new ExpiryGauges(leading);
  const pauseAfterWrite = createWritePause(clock);
  const work = new CertificateReconciler({
    secrets: createSecrets(client, namespace, signal),
    caSecret: configuration.caSecret,
    specs: wantedLeaves(leading),
    webhookConfiguration: configuration.webhookConfiguration,
    times: options.times ?? timesOf(configuration),
    leading,
    issued: countIssues(leading),
  });
  const reconciler = createReconciler({
    leading,
    inRounds: true,
    reconcile: async (_, stopping) => {
      const { found, wrote, nextMs } = await work.reconcile();
      expiry.show(found);
      if (wrote) await pauseAfterWrite(stopping);
      return { requeueAfterMs: Math.min(nextMs, intervalMs) };
    },
  });
  const names = [configuration.caSecret, ...leafSpecs(configuration, []).map(({ secretName }) => secretName)];
  // Not a cache: keys of Secrets are not kept in memory.
  const path = paths.secrets(namespace);
  const onChange = (): void => reconciler.add(key);
  const watches = names.map((name) => watchNamed({ client, path, name, onChange, log, clock }));
  await reconciler.run([key]);
  for (const watch of watches) watch.stop();
  expiry.end();
}

/** The wanted leaves. The webhook's certificate is not issued while the names of the webhook are unknown. */
function wantedLeaves({ configuration, log }: Leading): () => Promise<readonly LeafSpec[]> {
  let lastProblem = '';
  return async () => {
    const { webhookNames, webhooksFile } = configuration();
    if (webhookNames.length > 0 || webhooksFile === undefined)
      return leafSpecs(configuration(), webhookNames);
    const webhooks = await readWebhooksFile(webhooksFile).catch((error: unknown): readonly Webhook[] => {
      const problem = error instanceof Error ? error.message : String(error);
      if (problem !== lastProblem)
        log.error({ problem }, 'the names of the webhook are not known: set webhookNames or webhooksFile');
      lastProblem = problem;
      return [];
    });
    return leafSpecs(configuration(), webhookNamesOf(webhooks));
  };
}
