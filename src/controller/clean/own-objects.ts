/** Deletes what the controller created, as its label says; an object of the same name that others made stays. */
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import type { Configuration } from '../../policy/configuration/configuration.ts';
import { ownLabels, ownSecrets, type OwnObject } from '../own-objects.ts';
import { webhooksStep } from './webhooks.ts';
import { reasonOf, type Cleaning } from './steps.ts';
import { paths } from '../../kube/api/paths.ts';

const step = 'own objects';

/** Looks at each of them. While API servers still call the webhook, it needs its certificates. */
export async function removeOwnObjects(cleaning: Cleaning, configuration: Configuration): Promise<void> {
  if (cleaning.hasFailed(webhooksStep)) {
    cleaning.fail(step, 'certificates', 'are kept while there may be a webhook configuration');
    return;
  }
  const { namespace } = cleaning;
  const { brokenImagesName, movedPodsName } = configuration;
  const own: readonly OwnObject[] = [
    ...ownSecrets(configuration, namespace),
    configMap(namespace, brokenImagesName),
    configMap(namespace, movedPodsName),
  ];
  for (const object of own) await removeOne(cleaning, object);
}

function configMap(namespace: string, name: string): OwnObject {
  const path = paths.configMaps(namespace, name);
  return { kind: 'ConfigMap', namespace, name, path };
}

/** One that may not be read does not keep the others. */
async function removeOne(cleaning: Cleaning, { kind, namespace, name, path }: OwnObject): Promise<void> {
  const what = `${kind} ${namespace}/${name}`;
  let found: KubeObject | undefined;
  try {
    found = await cleaning.read<KubeObject>(path);
  } catch (error) {
    cleaning.signal.throwIfAborted();
    if (!(error instanceof KubeError)) throw error;
    cleaning.fail(step, what, reasonOf(error));
  }
  if (!found) return;
  const { uid = '', labels } = found.metadata ?? {};
  if (!Object.entries(ownLabels).every(([key, value]) => labels?.[key] === value)) {
    cleaning.note(step, `${what} stays: it was not made by archwright`);
    return;
  }
  await cleaning.change(step, what, (client, signal) => client.delete(path, { signal, uid }));
}
