/** Deletes what the controller created, as its label says; an object of the same name that others made stays. */
import type { KubeObject } from '../../kube/objects.ts';
import type { Configuration } from '../../policy/configuration.ts';
import { ownLabels, ownSecrets, type OwnObject } from '../own-objects.ts';
import type { Cleaning } from './cleaning.ts';

const step = 'own objects';

/** @throws KubeError where they cannot be read */
export async function removeOwnObjects(cleaning: Cleaning, configuration: Configuration): Promise<void> {
  const { namespace } = cleaning;
  const name = configuration.brokenImagesName;
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps/${encodeURIComponent(name)}`;
  const own: readonly OwnObject[] = [
    ...ownSecrets(configuration, namespace),
    { kind: 'ConfigMap', namespace, name, path },
  ];
  for (const object of own) await removeOne(cleaning, object);
}

/** One that may not be read does not keep the others. */
async function removeOne(cleaning: Cleaning, { kind, namespace, name, path }: OwnObject): Promise<void> {
  const what = `${kind} ${namespace}/${name}`;
  await cleaning.step(step, async () => {
    const found = await cleaning.read<KubeObject>(path);
    if (!found) return;
    const { uid = '', labels } = found.metadata ?? {};
    if (!Object.entries(ownLabels).every(([key, value]) => labels?.[key] === value)) {
      cleaning.note(step, `${what} stays: it was not made by archwright`);
      return;
    }
    await cleaning.change(step, what, (client, signal) => client.delete(path, { signal, uid }));
  });
}
