/**
 * The built-in certificates: an authority of the cluster's own, and what it signs: the serving certificates of webhook and agents, and
 * the client certificates by which agents know webhook and controller. All stand in Secrets; there is no other state.
 *
 * - `plan.ts`: what to do next, from what the Secrets hold and the API server's time; how an authority's life goes.
 * - `authorities.ts`, `leaves.ts`: the Secrets, taken apart; what is wrong with a certificate.
 * - `issue.ts`: issues certificates. `secrets.ts`: reads and writes Secrets.
 * - `client-certificate.ts`: each controller's own copy of its client certificate, whether it leads or not.
 *
 * A pass reads everything, does what the plan says, one write at a time, and begins again until nothing is left to do. A leader
 * that is stopped between two writes leaves something that the next one's first pass goes on from. A Secret that is deleted,
 * damaged or replaced by hand is put right by the watch on it.
 */
import { watchNamed } from '../../kube/watch/named-watch.ts';
import type { Feature, Leading } from '../leadership/leading.ts';
import { createPasses } from '../reconcile/passes.ts';
import { readWebhooksFile, webhookNamesOf, type Webhook } from '../webhook-configuration/webhooks-file.ts';
import { leafSpecs, type LeafSpec } from './leaves.ts';
import { countIssues, showExpiry } from './observe.ts';
import { createCertificateReconciler } from './reconcile.ts';
import { timesOf, type Times } from './plan.ts';
import { createSecrets } from './secrets.ts';
import { paths } from '../../kube/api/paths.ts';

export interface CertificatesOptions {
  /** Instead of those that follow from the settings; for tests, which have no time. */
  readonly times?: Times;
  /** Waits; injected by tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly random?: () => number;
}

/** Everything is looked at again after this long, whatever the watches say: the wall clock may have jumped. */
const lookAgainMs = 10 * 60_000;

/** Issues and rotates certificates while this replica leads; does nothing where they come from elsewhere. */
export function certificates(options: CertificatesOptions = {}): Feature {
  return async (leading) => {
    const { certificates, namespace } = leading.configuration();
    if (certificates !== 'builtin') return;
    if (namespace === undefined)
      leading.log.error('certificates are not issued: the namespace of archwright is not known');
    else await run(leading, options, namespace);
  };
}

async function run(leading: Leading, options: CertificatesOptions, namespace: string): Promise<void> {
  const { signal, client, clock, log } = leading;
  const { sleep, random } = options;
  const configuration = leading.configuration();
  const passes = createPasses({
    signal,
    clock,
    sleep,
    random,
    onFailure: (problem) => log.warn({ problem }, 'certificates cannot be kept; trying again'),
  });
  const expiry = showExpiry(leading);
  const pass = createCertificateReconciler({
    secrets: createSecrets(client, namespace, signal),
    caSecret: configuration.caSecret,
    specs: leafSpecsNow(leading),
    webhookConfiguration: configuration.webhookConfiguration,
    times: options.times ?? timesOf(configuration),
    leading,
    issued: countIssues(leading),
  });
  const names = [configuration.caSecret, ...leafSpecs(configuration, []).map(({ secretName }) => secretName)];
  // Keys of Secrets are not kept in memory.
  const path = paths.secrets(namespace);
  const watches = names.map((name) => watchNamed({ client, path, name, onChange: passes.kick, log, clock }));

  await passes.run(async () => {
    const result = await pass();
    expiry.found(result.found);
    return { wrote: result.wrote, nextMs: Math.min(result.nextMs, lookAgainMs) };
  });
  for (const watch of watches) watch.stop();
  expiry.end();
}

/** The leaves wanted now; without names of the webhook, while nothing says them, its certificate is not issued. */
function leafSpecsNow({ configuration, log }: Leading): () => Promise<readonly LeafSpec[]> {
  let told = '';
  return async () => {
    const { webhookNames, webhooksFile } = configuration();
    let names = webhookNames;
    if (names.length === 0 && webhooksFile !== undefined) {
      const webhooks = await readWebhooksFile(webhooksFile).catch((error: unknown): readonly Webhook[] => {
        const problem = error instanceof Error ? error.message : String(error);
        if (problem !== told)
          log.error({ problem }, 'the names of the webhook are not known: set webhookNames or webhooksFile');
        told = problem;
        return [];
      });
      names = webhookNamesOf(webhooks);
    }
    return leafSpecs(configuration(), names);
  };
}
