/** The chart's webhooks for a webhook beside the cluster, called by URL. */
import { tryPod } from '../cluster/archwright.ts';
import type { Cluster } from '../cluster/harness.ts';
import { render } from './helm.ts';
import { objectsOf, withWebhooks } from './rendered.ts';

/**
 * Makes the API server call the webhook, and waits until it does. With `failurePolicy: Fail` errors show.
 * @param image one that the webhook can place
 */
export async function callWebhook(
  cluster: Cluster,
  { url, ca }: { readonly url: string; readonly ca: string },
  image: string,
): Promise<void> {
  const map = objectsOf(render('helm4', { failurePolicy: 'Fail', timeoutSeconds: 10 })).find(
    ({ data }) => data?.['webhooks.yaml'] !== undefined,
  );
  const { webhooks, ...configuration } = withWebhooks(map);
  const caBundle = Buffer.from(ca).toString('base64');
  await cluster.create({
    ...configuration,
    webhooks: webhooks.map(({ clientConfig, ...webhook }) => ({
      ...webhook,
      clientConfig: { url: `${url}${clientConfig.service.path}`, caBundle },
    })),
  });
  const until = performance.now() + 30_000;
  while ((await tryPod(cluster, { image })).spec.affinity === undefined)
    if (performance.now() > until) throw new Error('the API server does not call the webhook');
}
