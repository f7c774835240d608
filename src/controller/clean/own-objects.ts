/** Deletes what the controller created. An object of the same name without its label stays. */
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { ownLabels, ownSecrets, type OwnObject } from '../own-objects.ts';
import { reasonOf, type CleanRun } from './run.ts';
import { paths } from '../../kube/api/paths.ts';
import { webhooksStep } from './webhooks.ts';

const step = 'own objects';

/** The certificates stay while API servers may still call the webhook. */
export async function removeOwnObjects(run: CleanRun): Promise<void> {
  if (run.tallies.hasFailed(webhooksStep)) {
    run.tallies.fail(step, 'certificates', 'are kept while there may be a webhook configuration');
    return;
  }
  const { namespace, configuration } = run.options;
  const { brokenImagesName, movedPodsName } = configuration;
  const own: readonly OwnObject[] = [
    ...ownSecrets(configuration, namespace),
    configMap(namespace, brokenImagesName),
    configMap(namespace, movedPodsName),
  ];
  for (const object of own) await removeOne(run, object);
}

function configMap(namespace: string, name: string): OwnObject {
  return { kind: 'ConfigMap', namespace, name, path: paths.configMaps(namespace, name) };
}

/** One unreadable object does not stop the others. */
async function removeOne(run: CleanRun, { kind, namespace, name, path }: OwnObject): Promise<void> {
  const what = `${kind} ${namespace}/${name}`;
  let found: KubeObject | undefined;
  try {
    found = await run.read<KubeObject>(path);
  } catch (error) {
    run.signal.throwIfAborted();
    if (!(error instanceof KubeError)) throw error;
    run.tallies.fail(step, what, reasonOf(error));
  }
  if (!found) return;
  const { uid = '', labels } = found.metadata ?? {};
  if (!Object.entries(ownLabels).every(([key, value]) => labels?.[key] === value)) {
    run.tallies.note(step, `${what} stays: it was not made by archwright`);
    return;
  }
  await run.change(step, what, (client, signal) => client.delete(path, { signal, uid }));
}
