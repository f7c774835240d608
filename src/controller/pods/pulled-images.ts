/** Images that a running pod pulled, and their facts with the pod's credentials. */
import type { FactsByImage, PodFactsRequest } from '../../cluster/facts-of-pod.ts';
import { serviceAccountOf } from '../../credentials/credential.ts';
import type { ImageUse } from '../../placement/pod/images.ts';
import type { CachedNode, RunningContainer, RunningPod } from '../state/cached.ts';
import type { LeaderContext } from '../lead/feature.ts';

/** No user waits for the answer. */
const usualBudgetMs = 5_000;

/** @param limits `budgetMs`: the longest wait. Default: 5 s. */
export function factsOf(
  { factsOfPod }: LeaderContext,
  { namespace, pullSecrets: names, serviceAccountName }: RunningPod,
  uses: readonly ImageUse[],
  limits: Partial<Pick<PodFactsRequest, 'budgetMs' | 'maxAgeMs'>> = {},
): Promise<FactsByImage> {
  const serviceAccount = serviceAccountOf(namespace, serviceAccountName);
  const pullSecrets = { names };
  return factsOfPod({ uses, namespace, pullSecrets, serviceAccount, budgetMs: usualBudgetMs, ...limits });
}

/** A reference by digest, for a lookup of facts. */
export function useOf(reference: string): ImageUse {
  return { image: reference, usedBy: [], pullPolicy: 'IfNotPresent', volumeOnly: false };
}

/** Whether a container of the pod has this image, as the pod writes it. */
export function usesImage({ images }: RunningPod, { name }: RunningContainer, image: string): boolean {
  return images.some((each) => each.usedBy === name && each.image === image);
}

/** References by digest that the containers with an image pulled. */
export function pulledReferences(pod: RunningPod, image: string): readonly string[] {
  const references = pod.containers
    .filter((container) => usesImage(pod, container, image))
    .map(({ imageID }) => withoutScheme(imageID));
  return [...new Set(references.filter((reference) => byDigest.test(reference)))];
}

export const byDigest = /@sha256:[0-9a-f]{64}$/u;

/** Whether the digests in `imageID` are those of one platform's manifest, also where an index names it. */
export function reportsPlatforms(node: CachedNode | undefined): boolean {
  return node?.classified?.class.runtime?.name === 'cri-o';
}

/** Some runtimes write `docker-pullable://` in front. */
export function withoutScheme(imageID: string): string {
  return imageID.replace(/^[a-z-]+:\/\//u, '');
}
