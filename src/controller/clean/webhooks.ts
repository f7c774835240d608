/**
 * Removes the webhook configuration, after which no pod gets a gate or a placement from us. If the settings name one, it is ours as a
 * whole. Otherwise our webhooks are recognized by their names, and other webhooks beside them stay.
 */
import { guardedPatch } from '../../kube/api/change.ts';
import { isCode } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import type { CleanRun } from './run.ts';

interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly { readonly name: string }[];
}

/** Names of webhooks are domain names; all of ours are below this one. */
const ourDomain = '.arch.example';

export const webhooksStep = 'webhook configuration';

/** @throws KubeError if configurations cannot be read */
export async function removeWebhooks(run: CleanRun): Promise<void> {
  const { webhookConfiguration: named } = run.options.configuration;
  if (named !== undefined) {
    if (await mayExist(run, named))
      await run.change(webhooksStep, `MutatingWebhookConfiguration ${named}`, (client, signal) =>
        client.delete(paths.mutatingWebhookConfigurations(named), { signal }),
      );
    return;
  }
  for await (const found of run.list<WebhookConfiguration>(paths.mutatingWebhookConfigurations())) {
    const { ours, others } = sorted(found);
    if (ours.length === 0) continue;
    const { name = '' } = found.metadata ?? {};
    const what = `MutatingWebhookConfiguration ${name}`;
    await removeOurs(run, name, others === 0 ? what : `our webhooks in ${what}`);
  }
}

/** The right to delete it by name may come without the right to read it. */
async function mayExist(run: CleanRun, name: string): Promise<boolean> {
  try {
    return (await run.read(paths.mutatingWebhookConfigurations(name))) !== undefined;
  } catch (error) {
    if (isCode(error, 'forbidden')) return true;
    throw error;
  }
}

/** Deletes the whole object if it has no other webhooks by then. */
async function removeOurs(run: CleanRun, name: string, what: string): Promise<void> {
  const path = paths.mutatingWebhookConfigurations(name);
  await run.change(webhooksStep, what, async (client, signal) => {
    const found = await client.get<WebhookConfiguration>(path, { signal });
    const { uid = '', resourceVersion = '' } = found.metadata ?? {};
    const { ours, others } = sorted(found);
    if (ours.length === 0) return;
    const operations = ours.map((index) => ({ op: 'remove', path: `/webhooks/${index}` }));
    if (others === 0) await client.delete(path, { signal, uid, resourceVersion });
    else await client.patch(path, guardedPatch(found, operations), { signal });
  });
}

/** Positions of our webhooks, the last one first, so that removing one does not move the next; and the number of others. */
function sorted({ webhooks = [] }: WebhookConfiguration): {
  readonly ours: readonly number[];
  readonly others: number;
} {
  const ours = webhooks.flatMap(({ name }, index) => (name.endsWith(ourDomain) ? [index] : [])).reverse();
  return { ours, others: webhooks.length - ours.length };
}
