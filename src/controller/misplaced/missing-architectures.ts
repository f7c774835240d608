/**
 * Images of a pod that certainly cannot run on its node: their facts are fresh and without error; no container of theirs runs there (there may
 * be an emulator, or the manifest may be wrong); and the facts are about the digest that was pulled. If the tag was pushed again
 * since, the facts of the pulled digest decide.
 */
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import type { ImageFacts } from '../../images/facts/facts.ts';
import { pullPolicyOf, type ImageUse } from '../../placement/pod/images.ts';
import { verdictsOf } from '../../placement/rules/required.ts';
import type { RunningContainer, RunningPod } from '../caches/cached.ts';

export interface ImageWithoutArchitecture {
  readonly image: string;
  /** Of the facts; the image as it is written if they have none. */
  readonly digest: string;
  /** What it has for the pod's operating system. */
  readonly architectures: readonly string[];
  /** References by digest to what was pulled, if the facts are about something else. */
  readonly pulled: readonly string[];
}

/** The pod's images, for a lookup of facts. */
export function usesOf({ images }: RunningPod): readonly ImageUse[] {
  return images.map(({ image, pullPolicy, usedBy }) => ({
    image,
    usedBy: [usedBy],
    pullPolicy: pullPolicyOf(image, pullPolicy),
    volumeOnly: false,
  }));
}

/** The images of a pod that certainly lack an architecture. */
export function imagesWithoutArchitecture(
  pod: RunningPod,
  architecture: string,
  facts: FactsByImage,
): readonly ImageWithoutArchitecture[] {
  const found = new Map<string, ImageWithoutArchitecture>();
  for (const { image, usedBy, architectures, facts: known } of verdictsOf(usesOf(pod), pod.os, (each) =>
    facts.get(each),
  )) {
    if (architectures === undefined || architectures.includes(architecture) || found.has(image)) continue;
    if (known === undefined || !isCertain(known)) continue;
    const statuses = pod.containers.filter(({ name }) => usedBy.includes(name));
    if (pod.containers.some((container) => uses(pod, container, image) && runs(container))) continue;
    const { digest = image } = known;
    const pulled = statuses.flatMap(({ imageID }) => pulledInstead(imageID, known));
    found.set(image, { image, digest, architectures, pulled });
  }
  return [...found.values()];
}

/** Whether the pulled images lack the architecture too. */
export function isMissingInPulled(
  { pulled }: ImageWithoutArchitecture,
  os: string,
  architecture: string,
  facts: FactsByImage,
): boolean {
  return pulled.every((reference) => {
    const known = facts.get(reference);
    if (known === undefined || !isCertain(known)) return false;
    const [verdict] = verdictsOf([useOf(reference)], os, () => known);
    return verdict?.architectures !== undefined && !verdict.architectures.includes(architecture);
  });
}

/** A reference by digest, for a lookup of facts. */
export function useOf(reference: string): ImageUse {
  return { image: reference, usedBy: [], pullPolicy: 'IfNotPresent', volumeOnly: false };
}

function isCertain({ error, stale }: ImageFacts): boolean {
  return error === undefined && !stale;
}

function uses({ images }: RunningPod, { name }: RunningContainer, image: string): boolean {
  return images.some((each) => each.usedBy === name && each.image === image);
}

/** The node could start it: it runs, or ended well. A container that waits or failed has a reason. */
function runs({ ready, running, reason, imageID }: RunningContainer): boolean {
  return ready || running || reason === 'Completed' || (reason === undefined && imageID !== '');
}

const byDigest = /@sha256:[0-9a-f]{64}$/u;

/** An image ID without a digest was imported: no registry has facts about it. */
function pulledInstead(imageID: string, { digest }: ImageFacts): readonly string[] {
  if (imageID === '' || digest === undefined) return [];
  const reference = imageID.replace(/^[a-z-]+:\/\//u, '');
  return byDigest.test(reference) && reference.endsWith(`@${digest}`) ? [] : [reference];
}
