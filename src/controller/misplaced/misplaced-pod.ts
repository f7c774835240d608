/** Finds out whether a suspect is misplaced: by its images and the facts about them. */
import { serviceAccountOf } from '../../credentials/credential.ts';
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import { ignoring } from '../../kube/api/errors.ts';
import type { Pod } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import { isArchitecture } from '../../names/architecture.ts';
import type { ImageUse } from '../../placement/pod/images.ts';
import type { RunningPod } from '../caches/cached.ts';
import { trimRunningPod } from '../caches/running-pods.ts';
import type { Leading } from '../leadership/leading.ts';
import {
  imagesWithoutArchitecture,
  isMissingInPulled,
  useOf,
  usesOf,
  type ImageWithoutArchitecture,
} from './missing-architectures.ts';
import { isSuspect } from './suspects.ts';

export interface MisplacedPod {
  readonly pod: RunningPod;
  /** Of the node. */
  readonly architecture: string;
  /** Its images that the node cannot run. */
  readonly images: readonly ImageWithoutArchitecture[];
  readonly facts: FactsByImage;
}

/** No user waits for the answer. */
const factsBudgetMs = 5_000;

/** @returns `undefined`: not misplaced, or not certain */
export async function misplacedPodOf(leading: Leading, pod: RunningPod): Promise<MisplacedPod | undefined> {
  const architecture = leading.caches.nodes.get('', pod.node)?.architecture;
  if (architecture === undefined || !isArchitecture(architecture)) return undefined;
  const facts = await factsOf(leading, pod, usesOf(pod));
  const images: ImageWithoutArchitecture[] = [];
  for (const image of imagesWithoutArchitecture(pod, architecture, facts)) {
    const pulled = image.pulled.length === 0 ? facts : await factsOf(leading, pod, image.pulled.map(useOf));
    if (isMissingInPulled(image, pod.os, architecture, pulled)) images.push(image);
  }
  return images.length === 0 ? undefined : { pod, architecture, images, facts };
}

async function factsOf(
  { factsOfPod }: Leading,
  { namespace, pullSecrets, serviceAccountName }: RunningPod,
  uses: readonly ImageUse[],
): Promise<FactsByImage> {
  const serviceAccount = serviceAccountOf(namespace, serviceAccountName);
  return factsOfPod({
    uses,
    namespace,
    pullSecrets: { names: pullSecrets },
    serviceAccount,
    budgetMs: factsBudgetMs,
  });
}

/**
 * Reads the pod again.
 * @returns `undefined`: it is gone, or no longer misplaced for the same reason
 * @throws KubeError
 */
export async function readMisplaced(
  { client, signal }: Leading,
  { pod, architecture, images, facts }: MisplacedPod,
): Promise<Pod | undefined> {
  const now = await ignoring('not-found', client.get<Pod>(paths.pods(pod.namespace, pod.name), { signal }));
  const trimmed = now && trimRunningPod(now, (value) => value);
  if (trimmed?.uid !== pod.uid || trimmed.node !== pod.node || !isSuspect(trimmed)) return undefined;
  const isSame = (image: ImageWithoutArchitecture): boolean =>
    images.some(
      (each) => each.image === image.image && JSON.stringify(each.pulled) === JSON.stringify(image.pulled),
    );
  const isStill = imagesWithoutArchitecture(trimmed, architecture, facts).some(
    (image) => isSame(image) || isMissingInPulled(image, trimmed.os, architecture, facts),
  );
  return isStill ? now : undefined;
}
