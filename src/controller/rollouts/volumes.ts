/** Whether the volumes of a pod can be attached on an architecture: a zonal disk is of no use if the zone has no such node. */
import { isCode } from '../../kube/api/errors.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { KubeObject, NodeSelectorTerm, Pod } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import type { Caches } from '../caches/caches.ts';
import { hasChosenNode, selectorsOf, takesPods } from '../scope/chosen-nodes.ts';

interface Claim extends KubeObject {
  readonly spec?: { readonly volumeName?: string };
}

interface Volume extends KubeObject {
  readonly spec?: {
    readonly nodeAffinity?: {
      readonly required?: { readonly nodeSelectorTerms?: readonly NodeSelectorTerm[] };
    };
  };
}

interface Reader {
  readonly client: KubeClient;
  readonly caches: Pick<Caches, 'nodes'>;
  readonly signal: AbortSignal;
}

/** A claim without a volume gets one where the pod runs. @throws KubeError if there is no answer */
export async function permitsVolumes(pod: Pod, architecture: string, reader: Reader): Promise<boolean> {
  const claims = (pod.spec.volumes ?? []).flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim ?? []);
  if (claims.length === 0) return true;
  const nodes = [...reader.caches.nodes.values()].filter(
    (node) => node.architecture === architecture && takesPods(node),
  );
  const names = new Set(nodes.map(({ name }) => name));
  for (const { claimName } of claims)
    if (!(await isAttachable(pod.metadata?.namespace ?? '', claimName, names, reader))) return false;
  return true;
}

async function isAttachable(
  namespace: string,
  claimName: string,
  nodes: ReadonlySet<string>,
  { client, signal }: Reader,
): Promise<boolean> {
  try {
    const claim = await client.get<Claim>(paths.persistentVolumeClaims(namespace, claimName), { signal });
    const volumeName = claim.spec?.volumeName;
    if (!volumeName) return true;
    const volume = await client.get<Volume>(paths.persistentVolumes(volumeName), { signal });
    const terms = volume.spec?.nodeAffinity?.required?.nodeSelectorTerms;
    if (terms === undefined) return true;
    return await hasChosenNode(nodes, selectorsOf({ nodeSelector: {}, terms }), { client, signal });
  } catch (error) {
    // The claim comes later, or the right to read it was not given.
    if (isCode(error, 'not-found')) return true;
    if (isCode(error, 'forbidden')) return false;
    throw error;
  }
}
