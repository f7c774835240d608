/** Whether a pod's volumes can attach on an architecture: a zonal disk needs such a node in its zone. */
import type { V1PersistentVolume, V1PersistentVolumeClaim } from '@kubernetes/client-node';
import { LoadingCache } from '../../../async/loading-cache.ts';
import { isCode } from '../../../kube/api/errors.ts';
import type { Json } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import type { Caches } from '../../state/caches.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { choosing, takesPods } from '../../pods/chosen-nodes.ts';

type Claim = Json<V1PersistentVolumeClaim>;
type Volume = Json<V1PersistentVolume>;

type Reader = Pick<LeaderContext, 'client' | 'signal' | 'clock'> & { readonly caches: Pick<Caches, 'nodes'> };

/** Rollouts look every few seconds, and each claim costs three requests. */
const rememberedMs = 10 * 60_000;
const maxRemembered = 5000;

/**
 * More disks than a node takes (GCE: 127, Azure: 64). A pod can name ten thousand claims of three requests
 * each, with names of any length (kubernetes `validatePersistentClaimVolumeSource`).
 */
const maxClaims = 128;
const maxNameLength = 253;

export type VolumesPermit = ReturnType<typeof createVolumesPermit>;

/** @returns whether a pod with these claims can run on an architecture; throws KubeError if there is no answer */
export function createVolumesPermit(reader: Reader) {
  const { clock } = reader;
  const known = new LoadingCache<boolean>({ clock, maxEntries: maxRemembered });
  return async (namespace: string, claims: readonly string[], architecture: string): Promise<boolean> => {
    if (claims.length > maxClaims || claims.some(({ length }) => length > maxNameLength)) return false;
    for (const claim of claims) {
      const permits = await known.get([namespace, architecture, claim].join('/'), async () => {
        const value = await isAttachable(namespace, claim, architecture, reader);
        // A claim without a volume gets one where the pod runs, and soon.
        const expiresAt = value === undefined ? -Infinity : clock.monotonic() + rememberedMs;
        return { value: value ?? true, expiresAt };
      });
      if (!permits) return false;
    }
    return true;
  };
}

/** @returns `undefined`: the claim has no volume yet */
async function isAttachable(
  namespace: string,
  claimName: string,
  architecture: string,
  { client, signal, caches }: Reader,
): Promise<boolean | undefined> {
  try {
    const claim = await client.get<Claim>(paths.persistentVolumeClaims(namespace, claimName), { signal });
    const volumeName = claim.spec?.volumeName;
    if (!volumeName) return undefined;
    const volume = await client.get<Volume>(paths.persistentVolumes(volumeName), { signal });
    const terms = volume.spec?.nodeAffinity?.required?.nodeSelectorTerms;
    if (terms === undefined) return true;
    const isInReach = choosing({ nodeSelector: {}, terms });
    return [...caches.nodes.values()].some(
      (node) => node.architecture === architecture && takesPods(node) && isInReach(node),
    );
  } catch (error) {
    if (isCode(error, 'not-found')) return undefined;
    // The right to read it was not given.
    if (isCode(error, 'forbidden')) return false;
    throw error;
  }
}
