/**
 * Applies the webhooks (server-side). The chart owns the object and its metadata, archwright the list
 * `webhooks`: Helm and GitOps controllers see no difference. A patch removes other writers' additions.
 */
import { isDeepStrictEqual } from 'node:util';
import { guardedPatch } from '../../../kube/api/change.ts';
import { paths } from '../../../kube/api/paths.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { applied, fieldManager } from '../../write/own-objects.ts';
import type { WebhookConfiguration } from '../../state/ca-bundle.ts';
import type { Webhook } from '../../state/webhooks-file.ts';

/** @returns replaces the webhooks of the object, and returns whether they had to be written */
export function createWriter(
  { client, signal, log }: Pick<LeaderContext, 'client' | 'signal' | 'log'>,
  name: string,
) {
  const path = paths.mutatingWebhookConfigurations(name);
  /**
   * The written and the resulting webhooks, if they differ. Some clusters change every webhook configuration
   * as it is written; writing again would never end.
   */
  let settledFor: { readonly meant: readonly Webhook[]; readonly got: readonly Webhook[] } | undefined;
  return async (
    { metadata, webhooks: actual = [] }: WebhookConfiguration,
    webhooks: readonly Webhook[],
  ): Promise<boolean> => {
    if (isSame(actual, webhooks)) return false;
    if (isSame(settledFor?.meant, webhooks) && isSame(settledFor?.got, actual)) return false;
    const body = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      // With the uid, a deleted object is not created again (measured: 409).
      metadata: { name, ...(metadata?.uid !== undefined && { uid: metadata.uid }) },
      webhooks,
    };
    let now = await client.patch<WebhookConfiguration>(path, applied(body), { signal });
    if (!isSame(now.webhooks ?? [], webhooks)) {
      const replace = guardedPatch(now, [{ op: 'add', path: '/webhooks', value: webhooks }]);
      now = await client.patch(path, replace, { signal, query: { fieldManager } });
    }
    settledFor = undefined;
    if (!isSame(now.webhooks ?? [], webhooks)) {
      settledFor = { meant: webhooks, got: now.webhooks ?? [] };
      log.warn(
        { name },
        'the API server, or an admission webhook, changes the webhook configuration as it is written',
      );
    }
    return true;
  };
}

/** Equal as JSON values, in any order of fields. A field that is `undefined` counts as missing. */
export function isSame(a: unknown, b: unknown): boolean {
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify([value]));
  return isDeepStrictEqual(plain(a), plain(b));
}
