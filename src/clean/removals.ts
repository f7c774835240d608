/** The steps of `archwright clean`. Each throws KubeError if its objects cannot be read. */
import { ownNames, keys } from '../names/keys.ts';
import { guardedPatch } from '../kube/api/change.ts';
import type { Patch } from '../kube/api/client.ts';
import { ifCode, ignoring } from '../kube/api/errors.ts';
import type { KubeObject, Node, Pod } from '../kube/api/objects.ts';
import { paths } from '../kube/api/paths.ts';
import { stateOperations } from '../placement/patch/patch.ts';
import { features } from '../controller/features.ts';
import type { Leftovers } from '../controller/lead/feature.ts';
import { isOwn, openReports } from '../controller/write/own-objects.ts';
import type { WebhookConfiguration } from '../controller/state/webhooks-file.ts';
import { reasonOf, type Change, type CleanRun } from './run.ts';

/** Names of webhooks are domain names; all of ours are below this one. */
const ourDomain = '.arch.example';

export const webhooksStep = 'webhook configuration';

/**
 * Removes the webhook configuration; no pod gets a gate or a placement after that. If the settings name one,
 * all of it is ours. Otherwise our webhooks are recognized by name.
 */
export async function removeWebhooks(run: CleanRun): Promise<void> {
  const { webhookConfiguration: named } = run.options.configuration;
  if (named !== undefined) {
    const what = `MutatingWebhookConfiguration ${named}`;
    const path = paths.mutatingWebhookConfigurations(named);
    // The right to delete it by name may come without the right to read it.
    const found = await run.read(path).catch(ifCode('forbidden', () => 'unknown'));
    if (found !== undefined)
      await run.change(webhooksStep, what, (client, signal) => client.delete(path, { signal }), 'delete');
    return;
  }
  for await (const { metadata = {}, webhooks = [] } of run.list<WebhookConfiguration>(
    paths.mutatingWebhookConfigurations(),
  )) {
    const { name = '', uid = '', resourceVersion = '' } = metadata;
    const others = webhooks.filter((webhook) => !webhook.name.endsWith(ourDomain));
    if (others.length === webhooks.length) continue;
    const what = `MutatingWebhookConfiguration ${name}`;
    const path = paths.mutatingWebhookConfigurations(name);
    const remove: Change = (client, signal) => client.delete(path, { signal, uid, resourceVersion });
    if (others.length === 0) await run.change(webhooksStep, what, remove, 'delete');
    else
      run.fail(webhooksStep, what, `has webhooks that are not ours; remove those that end with ${ourDomain}`);
  }
}

/**
 * Removes a scheduling gate from every pod that has it now. Other gates and the pod's placement stay.
 * @returns how many were removed
 */
export function removeGates(run: CleanRun, gate: string): Promise<number> {
  return run.patchEach<Pod>({
    step: 'gates',
    // A pod with a node has no gates: the API server refuses to bind one that has.
    objects: run.list(paths.pods(), { fieldSelector: 'spec.nodeName=' }),
    of: (name, namespace) => [paths.pods(namespace, name), `pod ${namespace}/${name}`],
    patchOf: (pod) => {
      const index = pod.spec.schedulingGates?.findIndex(({ name }) => name === gate) ?? -1;
      if (index < 0) return undefined;
      const label = gate === keys.gate ? stateOperations(pod, {}, false) : [];
      return guardedPatch(pod, [{ op: 'remove', path: `/spec/schedulingGates/${index}` }, ...label]);
    },
  });
}

/** @param patchOf removes it from a node; `undefined`: the node has none */
export function removeFromNodes(
  run: CleanRun,
  { step, what, labelSelector }: Omit<NonNullable<Leftovers['nodes']>, 'removal'>,
  patchOf: (node: Node) => Patch | undefined,
): Promise<number> {
  const objects = run.list<Node>(paths.nodes(), labelSelector === undefined ? {} : { labelSelector });
  return run.patchEach({
    step,
    objects,
    of: (name) => [paths.nodes(name), `${what} of node ${name}`],
    patchOf,
  });
}

export async function removeOthers(
  run: CleanRun,
  { step, kind, path, fieldSelector }: NonNullable<Leftovers['others']>,
): Promise<void> {
  for await (const { metadata } of run.list<KubeObject>(path(), { fieldSelector })) {
    const name = metadata?.name ?? '';
    const remove: Change = (client, signal) => client.delete(path(name), { signal });
    await run.change(step, `${kind} ${name}`, remove, 'delete');
  }
}

const ownObjectsStep = 'own objects';

/** Deletes our objects. The certificates stay while API servers may still call the webhook. */
export async function removeOwnObjects(run: CleanRun): Promise<void> {
  if (run.hasFailed(webhooksStep)) {
    run.fail(ownObjectsStep, 'certificates', 'are kept while there may be a webhook configuration');
    return;
  }
  const { configuration } = run.options;
  const { report } = ownNames(configuration);
  const ofFeatures = features.flatMap(({ leftovers }) => leftovers?.objects?.(configuration) ?? []);
  for (const { kind, name } of [...ofFeatures, { kind: 'ConfigMap', name: report } as const])
    await removeOwn(run, kind, name);
  await removeReports(run, report);
}

/** A cluster may have no OpenReports, and a person no right to them. */
async function removeReports(run: CleanRun, name: string): Promise<void> {
  const removing = async (): Promise<void> => {
    for await (const found of run.list<KubeObject>(openReports(), {
      fieldSelector: `metadata.name=${name}`,
    })) {
      const { namespace = '', uid = '' } = found.metadata ?? {};
      const path = openReports(namespace, name);
      const remove: Change = (client, signal) => client.delete(path, { signal, uid });
      if (isOwn(found)) await run.change(ownObjectsStep, `Report ${namespace}/${name}`, remove, 'delete');
    }
  };
  await ignoring(['not-found', 'forbidden'], removing());
}

/** One unreadable object does not stop the others. An object of the same name without our label stays. */
async function removeOwn(run: CleanRun, kind: 'Secret' | 'ConfigMap', name: string): Promise<void> {
  const { namespace } = run.options;
  const path = { Secret: paths.secrets, ConfigMap: paths.configMaps }[kind](namespace, name);
  const what = `${kind} ${namespace}/${name}`;
  const found = await run.read<KubeObject>(path).catch((error: unknown) => {
    run.fail(ownObjectsStep, what, reasonOf(run.failureOf(error)));
    return undefined;
  });
  if (!found) return;
  const { uid = '' } = found.metadata ?? {};
  if (!isOwn(found)) {
    run.note(ownObjectsStep, `${what} stays: it was not made by archwright`);
    return;
  }
  await run.change(ownObjectsStep, what, (client, signal) => client.delete(path, { signal, uid }), 'delete');
}
