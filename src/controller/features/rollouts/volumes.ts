/** Whether a pod's volumes can attach on an architecture: a zonal disk needs such a node in its zone. */
import { BoundedMap } from '../../../async/bounded-map.ts';
import type { Clock } from '../../../async/clock.ts';
import { isCode } from '../../../kube/api/errors.ts';
import type { KubeObject, NodeSelectorTerm, Pod } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import type { Caches } from '../../state/caches.ts';
import { claimsOf, type RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { choosing, takesPods } from '../../pods/chosen-nodes.ts';

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

type Reader = Pick<LeaderContext, 'client' | 'signal'> & { readonly caches: Pick<Caches, 'nodes'> };

/** Rollouts look every few seconds, and each claim costs three requests. */
const rememberedMs = 10 * 60_000;
const maxRemembered = 5000;

export type VolumesPermit = ReturnType<typeof createKnownVolumes>;

/** @returns whether the volumes of a running pod let its successor run on an architecture; throws KubeError */
export function createKnownVolumes(reader: Reader & { readonly clock: Clock }) {
  const known = new BoundedMap<string, { readonly at: number; readonly permits: boolean }>(maxRemembered);
  return ({ namespace, claims }: Pick<RunningPod, 'namespace' | 'claims'>, architecture: string) =>
    areAll(claims, async (claim) => {
      const key = [namespace, architecture, claim].join('/');
      const now = reader.clock.monotonic();
      const last = known.get(key);
      if (last && now - last.at < rememberedMs) return last.permits;
      const permits = await isAttachable(namespace, claim, architecture, reader);
      known.set(key, { at: now, permits });
      return permits;
    });
}

/** Reads the volumes of a new pod, which may have got them a moment ago. @throws KubeError if there is no answer */
export function permitsVolumes({ metadata, spec }: Pod, architecture: string, reader: Reader) {
  const { namespace = '' } = metadata ?? {};
  return areAll(claimsOf(spec), (claim) => isAttachable(namespace, claim, architecture, reader));
}

/**
 * More disks than a node takes (GCE: 127, Azure: 64). A pod can name ten thousand claims of three requests
 * each, with names of any length (kubernetes `validatePersistentClaimVolumeSource`).
 */
const maxClaims = 128;
const maxNameLength = 253;

async function areAll(claims: readonly string[], permits: (claim: string) => Promise<boolean>) {
  if (claims.length > maxClaims || claims.some(({ length }) => length > maxNameLength)) return false;
  for (const claim of claims) if (!(await permits(claim))) return false;
  return true;
}

async function isAttachable(
  namespace: string,
  claimName: string,
  architecture: string,
  { client, signal, caches }: Reader,
): Promise<boolean> {
  try {
    const claim = await client.get<Claim>(paths.persistentVolumeClaims(namespace, claimName), { signal });
    const volumeName = claim.spec?.volumeName;
    // It gets one where the pod runs.
    if (!volumeName) return true;
    const volume = await client.get<Volume>(paths.persistentVolumes(volumeName), { signal });
    const terms = volume.spec?.nodeAffinity?.required?.nodeSelectorTerms;
    if (terms === undefined) return true;
    const isInReach = choosing({ nodeSelector: {}, terms });
    return [...caches.nodes.values()].some(
      (node) => node.architecture === architecture && takesPods(node) && isInReach(node),
    );
  } catch (error) {
    // The claim comes later, or the right to read it was not given.
    if (isCode(error, 'not-found')) return true;
    if (isCode(error, 'forbidden')) return false;
    throw error;
  }
}
