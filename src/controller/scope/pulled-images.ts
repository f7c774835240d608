/** Images that a running pod pulled, and lookups of images as it would pull them. */
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import { serviceAccountOf } from '../../credentials/credential.ts';
import type { ImageRequest } from '../../images/facts/facts.ts';
import { parseReference } from '../../images/references/reference.ts';
import type { ImageUse } from '../../placement/pod/images.ts';
import type { RunningPod } from '../caches/cached.ts';
import type { Leading } from '../leadership/leading.ts';

/** No user waits for the answer. */
const usualBudgetMs = 5_000;

/** @param budgetMs longest wait. Default: 5 s. */
export function factsOf(
  { factsOfPod }: Leading,
  { namespace, pullSecrets, serviceAccountName }: RunningPod,
  uses: readonly ImageUse[],
  budgetMs = usualBudgetMs,
): FactsByImage | Promise<FactsByImage> {
  const serviceAccount = serviceAccountOf(namespace, serviceAccountName);
  const names = { names: pullSecrets };
  return factsOfPod({ uses, namespace, pullSecrets: names, serviceAccount, budgetMs });
}

/**
 * A lookup of one image.
 * @throws InvalidReference
 * @throws CredentialError for a malformed pull secret
 * @throws the reason of `signal` if it aborts first
 */
export async function requestOfPod(
  { pullSecrets }: Pick<Leading, 'pullSecrets'>,
  { namespace, pullSecrets: names, serviceAccountName }: RunningPod,
  image: string,
  signal: AbortSignal,
): Promise<ImageRequest> {
  const reference = parseReference(image);
  const source = await pullSecrets.source(namespace, { names }, signal);
  const serviceAccount = serviceAccountOf(namespace, serviceAccountName);
  return {
    image,
    reference,
    pullPolicy: 'IfNotPresent',
    pullCredentials: await source.lookup(reference.repository),
    namespace,
    ...(serviceAccount && { serviceAccount }),
  };
}

/** A reference by digest, for a lookup of facts. */
export function useOf(reference: string): ImageUse {
  return { image: reference, usedBy: [], pullPolicy: 'IfNotPresent', volumeOnly: false };
}

export const byDigest = /@sha256:[0-9a-f]{64}$/u;

/** Some runtimes write `docker-pullable://` in front. */
export function withoutScheme(imageID: string): string {
  return imageID.replace(/^[a-z-]+:\/\//u, '');
}
