/**
 * Images of a pod that its node's architecture surely cannot run: what the registry says of them is fresh and without
 * error, no container of theirs runs there (an emulator may be at work, or the manifest be wrong), and what was pulled is
 * what the facts are about. A tag may have been pushed again since: then the facts of the digest that was pulled decide.
 */
import type { FactsByImage } from '../../cluster/facts-of-pod.ts';
import type { ImageFacts } from '../../images/facts/facts.ts';
import { pullPolicyOf, type ImageUse } from '../../placement/pod/images.ts';
import { verdictsOf } from '../../placement/rules/required.ts';
import type { RunningContainer, RunningPod } from '../caches/caches.ts';

export interface ImageWithoutArchitecture {
  readonly image: string;
  /** Of the facts; the image as it is written where they have none. */
  readonly digest: string;
  /** What it has for the pod's operating system. */
  readonly architectures: readonly string[];
  /** References by digest of what was pulled, where that is not what the facts are about. */
  readonly pulled: readonly string[];
}

/** The pod's images in the form in which facts are asked for. */
export function usesOf({ images }: RunningPod): readonly ImageUse[] {
  return images.map(({ image, pullPolicy, usedBy }) => ({
    image,
    usedBy: [usedBy],
    pullPolicy: pullPolicyOf(image, pullPolicy),
    volumeOnly: false,
  }));
}

/** The images of a pod that lack an architecture; empty where that is not sure. */
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
    const pulled = statuses.flatMap(({ imageID }) => pulledOtherwise(imageID, known));
    found.set(image, { image, digest, architectures, pulled });
  }
  return [...found.values()];
}

/** Whether facts of what was pulled say the same. */
export function alsoLack(
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

/** A reference by digest as a question about facts. */
export function useOf(reference: string): ImageUse {
  return { image: reference, usedBy: [], pullPolicy: 'IfNotPresent', volumeOnly: false };
}

function isCertain({ error, stale }: ImageFacts): boolean {
  return error === undefined && !stale;
}

function uses({ images }: RunningPod, { name }: RunningContainer, image: string): boolean {
  return images.some((each) => each.usedBy === name && each.image === image);
}

/** It runs, or has ended well: the node could start it. A container that waits, or ended badly, says why. */
function runs({ ready, running, reason, imageID }: RunningContainer): boolean {
  return ready || running || reason === 'Completed' || (reason === undefined && imageID !== '');
}

const byDigest = /@sha256:[0-9a-f]{64}$/u;

/** What cannot be told by its digest was never seen by a registry; no facts of one can be about it. */
function pulledOtherwise(imageID: string, { digest }: ImageFacts): readonly string[] {
  if (imageID === '' || digest === undefined) return [];
  const reference = imageID.replace(/^[a-z-]+:\/\//u, '');
  return byDigest.test(reference) && reference.endsWith(`@${digest}`) ? [] : [reference];
}
