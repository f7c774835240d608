/**
 * Removes the webhook configuration, after which no pod gets a gate or a placement from us. The one that the configuration
 * names is ours as a whole. Where none is named, ours are known by the names of their webhooks, and what others have put
 * beside them stays.
 */
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import type { Configuration } from '../../policy/configuration/configuration.ts';
import type { Cleaning } from './steps.ts';
import { paths } from '../../kube/api/paths.ts';

interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly { readonly name: string }[];
}

/** Names of webhooks are domain names; all of ours are below this one. */
const ourDomain = '.arch.example';

export const webhooksStep = 'webhook configuration';

/** @throws KubeError where configurations cannot be read */
export async function removeWebhooks(
  cleaning: Cleaning,
  { webhookConfiguration: named }: Pick<Configuration, 'webhookConfiguration'>,
): Promise<void> {
  if (named !== undefined) {
    if (await exists(cleaning, named)) await remove(cleaning, named);
    return;
  }
  for await (const found of cleaning.list<WebhookConfiguration>(paths.mutatingWebhookConfigurations())) {
    const name = found.metadata?.name ?? '';
    const { ours, others } = sorted(found);
    if (ours.length === 0) continue;
    const what = `MutatingWebhookConfiguration ${name}`;
    await takeOut(cleaning, name, others === 0 ? what : `our webhooks in ${what}`);
  }
}

/** Whoever may delete it by name need not have the right to read it. */
async function exists(cleaning: Cleaning, name: string): Promise<boolean> {
  try {
    return (await cleaning.read(paths.mutatingWebhookConfigurations(name))) !== undefined;
  } catch (error) {
    if (error instanceof KubeError && error.code === 'forbidden') return true;
    throw error;
  }
}

async function remove(cleaning: Cleaning, name: string): Promise<void> {
  await cleaning.change(webhooksStep, `MutatingWebhookConfiguration ${name}`, (client, signal) =>
    client.delete(paths.mutatingWebhookConfigurations(name), { signal }),
  );
}

/** The whole object, where it has no webhooks of others by then. */
async function takeOut(cleaning: Cleaning, name: string, what: string): Promise<void> {
  await cleaning.change(webhooksStep, what, async (client, signal) => {
    const found = await client.get<WebhookConfiguration>(paths.mutatingWebhookConfigurations(name), {
      signal,
    });
    const { uid = '', resourceVersion = '' } = found.metadata ?? {};
    const { ours, others } = sorted(found);
    if (ours.length === 0) return;
    if (others === 0) {
      await client.delete(paths.mutatingWebhookConfigurations(name), { signal, uid, resourceVersion });
      return;
    }
    const body = [
      { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
      // From the last to the first, so that the places of the others hold.
      ...ours.map((index) => ({ op: 'remove', path: `/webhooks/${index}` })),
    ];
    await client.patch(paths.mutatingWebhookConfigurations(name), { type: 'json', body }, { signal });
  });
}

/** Places of our webhooks, last first, and how many are of others. */
function sorted({ webhooks = [] }: WebhookConfiguration): {
  readonly ours: number[];
  readonly others: number;
} {
  const ours = webhooks.flatMap(({ name }, index) => (name.endsWith(ourDomain) ? [index] : [])).reverse();
  return { ours, others: webhooks.length - ours.length };
}
