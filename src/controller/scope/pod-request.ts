/** A lookup of one image as a running pod would pull it. */
import { serviceAccountOf } from '../../credentials/credential.ts';
import type { ImageRequest } from '../../images/facts/facts.ts';
import { parseReference } from '../../images/references/reference.ts';
import type { RunningPod } from '../caches/cached.ts';
import type { Leading } from '../leadership/leading.ts';

/**
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
