/**
 * Finds the images of a suspect that certainly cannot run on its node: their facts are fresh and without
 * error; no container of theirs runs there (emulator, wrong manifest); and the facts are about the pulled
 * digest. If the tag was pushed again since, the facts of the pulled digest decide.
 */
import type { FactsByImage } from '../../../cluster/facts-of-pod.ts';
import { confirmedMs } from '../../../images/facts/facts.ts';
import { ignoring } from '../../../kube/api/errors.ts';
import type { Pod } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import { isArchitecture } from '../../../names/architecture.ts';
import type { NodeClasses } from '../../../nodes/node-classes.ts';
import { pullPolicyOf, type ImageUse } from '../../../placement/pod/images.ts';
import { verdictsOf } from '../../../placement/rules/images/fit.ts';
import { hasEnded, trimRunningPod, type RunningContainer, type RunningPod } from '../../state/cached.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import {
  byDigest,
  factsOf,
  pulledReferences,
  useOf,
  usesImage,
  withoutScheme,
} from '../../pods/pulled-images.ts';
import { skippedPods } from '../../pods/skipped-pods.ts';
import { isOfPlacedTemplate } from '../../pods/workload.ts';

export interface ImageWithoutArchitecture {
  readonly image: string;
  /** Digest of the facts; the image as it is written if they have none. */
  readonly digest: string;
  /** The architectures for the pod's operating system. */
  readonly architectures: readonly string[];
  /** Pulled references by digest, if the facts are about another one. */
  readonly pulled: readonly string[];
}

export interface MisplacedPod {
  readonly pod: RunningPod;
  /** Architecture of the node. */
  readonly architecture: string;
  /** Its images that the node cannot run. */
  readonly images: readonly ImageWithoutArchitecture[];
  /** About its images, and about the pulled references. */
  readonly facts: FactsByImage;
}

/** Whether a pod is not ready, and has a controller that would replace it. */
export function isSuspect(pod: RunningPod): boolean {
  const { owner, annotations } = pod;
  if (pod.ready || pod.deleting || hasEnded(pod)) return false;
  if (annotations?.['kubernetes.io/config.mirror'] !== undefined) return false;
  // Static pods are owned by their node.
  return owner !== undefined && owner.kind !== 'Node';
}

/** @returns `undefined`: not misplaced, or not certain */
export async function misplacedPodOf(
  leader: LeaderContext,
  pod: RunningPod,
): Promise<MisplacedPod | undefined> {
  const architecture = leader.caches.nodes.get('', pod.node)?.architecture;
  if (architecture === undefined || !isArchitecture(architecture)) return undefined;
  const on = { os: pod.os, architecture, nodes: leader.nodeClasses() };
  const ofImages = await factsOf(leader, pod, usesOf(pod));
  const found = imagesWithoutArchitecture(pod, ofImages, on);
  if (found.length === 0) return undefined;
  const pulled = found.flatMap((image) => image.pulled.map(useOf));
  const facts = new Map([...ofImages, ...(await factsOf(leader, pod, pulled))]);
  const images = found.filter((image) => isMissingInPulled(image, facts, on));
  return images.length === 0 ? undefined : { pod, architecture, images, facts };
}

/** Whether the webhook skips the pod, and its successor. For a pod of a DaemonSet, the template decides. */
export function isSkipped(leader: LeaderContext, pod: RunningPod): boolean {
  return !isOfPlacedTemplate(pod) && skippedPods(leader)(pod);
}

/** Reads the pod again; `undefined`: gone, skipped, or not misplaced now. @throws KubeError */
export async function readMisplaced(
  leader: LeaderContext,
  { pod, architecture, facts }: MisplacedPod,
): Promise<Pod | undefined> {
  const { client, signal, nodeClasses } = leader;
  const now = await ignoring('not-found', client.get<Pod>(paths.pods(pod.namespace, pod.name), { signal }));
  const trimmed = now && trimRunningPod(now, (value) => value);
  if (trimmed?.uid !== pod.uid || trimmed.node !== pod.node || !isSuspect(trimmed)) return undefined;
  if (isSkipped(leader, trimmed)) return undefined;
  const on = { os: trimmed.os, architecture, nodes: nodeClasses() };
  const isStill = imagesWithoutArchitecture(trimmed, facts, on).some((image) =>
    isMissingInPulled(image, facts, on),
  );
  return isStill ? now : undefined;
}

/**
 * Confirms right before an eviction that the node cannot run the images. The pulled digests decide. Without
 * them the tag does, and an older answer about it does not count.
 */
export async function isConfirmed(
  leader: LeaderContext,
  { pod, architecture, images }: MisplacedPod,
): Promise<boolean> {
  const uses = images.flatMap(({ image }) => {
    const pulled = pulledReferences(pod, image).map(useOf);
    return pulled.length > 0 ? pulled : [useOf(image)];
  });
  const facts = await factsOf(leader, pod, uses, { maxAgeMs: confirmedMs });
  const on = { os: pod.os, architecture, nodes: leader.nodeClasses() };
  return lacking(uses, facts, on).length === uses.length;
}

/** The pod's images, for a lookup of facts. */
function usesOf({ images }: RunningPod): readonly ImageUse[] {
  return images.map(({ image, pullPolicy }) => {
    return { ...useOf(image), pullPolicy: pullPolicyOf(image, pullPolicy) };
  });
}

interface On {
  readonly os: string;
  readonly architecture: string;
  readonly nodes: NodeClasses | undefined;
}

function imagesWithoutArchitecture(
  pod: RunningPod,
  facts: FactsByImage,
  on: On,
): readonly ImageWithoutArchitecture[] {
  const found = new Map<string, ImageWithoutArchitecture>();
  for (const { image, architectures = [], facts: { digest } = {} } of lacking(usesOf(pod), facts, on)) {
    const containers = pod.containers.filter((container) => usesImage(pod, container, image));
    if (containers.some(runs)) continue;
    const pulled = containers.flatMap(({ imageID }) => pulledInstead(imageID, digest));
    found.set(image, { image, digest: digest ?? image, architectures, pulled });
  }
  return [...found.values()];
}

/** Whether the pulled images lack the architecture too. */
function isMissingInPulled({ pulled }: ImageWithoutArchitecture, facts: FactsByImage, on: On): boolean {
  return lacking(pulled.map(useOf), facts, on).length === pulled.length;
}

/** The images that certainly lack the architecture. */
function lacking(uses: readonly ImageUse[], facts: FactsByImage, { os, architecture, nodes }: On) {
  return verdictsOf(uses, os, (image) => facts.get(image), nodes).filter(
    ({ architectures, facts: known }) =>
      known?.error === undefined && known?.stale !== true && architectures?.includes(architecture) === false,
  );
}

/** The node could start it: it runs, or ended well. A container that waits or failed has a reason. */
function runs({ ready, running, reason, imageID }: RunningContainer): boolean {
  return ready || running || reason === 'Completed' || (reason === undefined && imageID !== '');
}

/** An image ID without a digest was imported: no registry has facts about it. */
function pulledInstead(imageID: string, digest: string | undefined): readonly string[] {
  if (imageID === '' || digest === undefined) return [];
  const reference = withoutScheme(imageID);
  return byDigest.test(reference) && reference.endsWith(`@${digest}`) ? [] : [reference];
}
