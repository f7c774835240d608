/**
 * Writes the webhooks by server-side apply. The chart owns the object and its metadata, archwright owns the list `webhooks`, so neither
 * Helm nor a GitOps controller sees a difference. A patch removes what other writers added to the list or to a webhook.
 */
import { guardedPatch } from '../../kube/api/change.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { Log } from '../../telemetry/log.ts';
import { fieldManager } from '../own-objects.ts';
import type { WebhookConfiguration } from './ca-bundle.ts';
import { isSame } from './compare.ts';
import type { Webhook } from './webhooks-file.ts';
import { paths } from '../../kube/api/paths.ts';

export interface Writer {
  /**
   * Replaces the webhooks of the object.
   * @returns whether they had to be written
   * @throws KubeError
   */
  write(found: WebhookConfiguration, webhooks: readonly Webhook[]): Promise<boolean>;
}

export interface WriterOptions {
  readonly client: KubeClient;
  readonly name: string;
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly step: (name: string) => Promise<void> | void;
}

export function createWriter({ client, name, signal, log, step }: WriterOptions): Writer {
  const path = paths.mutatingWebhookConfigurations(name);
  /**
   * The written and the resulting webhooks, if they differ. Some clusters change every webhook configuration as it is written; writing it
   * again would never end.
   */
  let settledFor: { readonly meant: readonly Webhook[]; readonly got: readonly Webhook[] } | undefined;

  async function apply(uid: string | undefined, webhooks: readonly Webhook[]): Promise<WebhookConfiguration> {
    const body = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      // With the uid, a deleted object is not created again (measured: 409).
      metadata: { name, ...(uid !== undefined && { uid }) },
      webhooks,
    };
    return await client.patch(path, { type: 'apply', body, fieldManager, force: true }, { signal });
  }

  async function replace(
    now: WebhookConfiguration,
    webhooks: readonly Webhook[],
  ): Promise<WebhookConfiguration> {
    const patch = guardedPatch(now, [{ op: 'add', path: '/webhooks', value: webhooks }]);
    return await client.patch(path, patch, { signal, query: { fieldManager } });
  }

  return {
    write: async (found, webhooks) => {
      const actual = found.webhooks ?? [];
      if (isSame(actual, webhooks)) return false;
      if (settledFor && isSame(settledFor.meant, webhooks) && isSame(settledFor.got, actual)) return false;
      let now = await apply(found.metadata?.uid, webhooks);
      await step('webhook-configuration/applied');
      if (!isSame(now.webhooks ?? [], webhooks)) now = await replace(now, webhooks);
      const got = now.webhooks ?? [];
      if (isSame(got, webhooks)) settledFor = undefined;
      else {
        settledFor = { meant: webhooks, got };
        log.warn(
          { name },
          'the API server, or an admission webhook, changes the webhook configuration as it is written',
        );
      }
      await step('webhook-configuration/written');
      return true;
    },
  };
}
