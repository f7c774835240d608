/** The chart's webhooks for a webhook beside the cluster, called by URL. */
import type { Pod } from '../../../src/kube/api/objects.ts';
import { patience, type Cluster } from '../cluster/harness.ts';
import { render } from './helm.ts';
import { objectsOf, withWebhooks, type Rendered } from './rendered.ts';

interface Called {
  readonly clientConfig: { readonly service: { readonly path: string } };
}

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
  const { webhooks, ...configuration } = withWebhooks(map) as Rendered & {
    readonly webhooks: readonly Called[];
  };
  const caBundle = Buffer.from(ca).toString('base64');
  await cluster.create({
    ...configuration,
    webhooks: webhooks.map(({ clientConfig, ...webhook }) => ({
      ...webhook,
      clientConfig: { url: `${url}${clientConfig.service.path}`, caBundle },
    })),
  });
  const probe = { metadata: { generateName: 'probe-' }, spec: { containers: [{ name: 'app', image }] } };
  const until = performance.now() + 30_000;
  while (performance.now() < until) {
    const path = '/api/v1/namespaces/default/pods';
    const options = { signal: patience(), query: { dryRun: 'All' } };
    const { spec } = await cluster.client.create<Pod>(path, probe, options);
    if (spec.affinity !== undefined) return;
  }
  throw new Error('the API server does not call the webhook');
}
