/**
 * Pods that have a node already. An ephemeral container (`kubectl debug`) or a new image cannot move the pod.
 * If its node cannot run the new image, the person gets a warning.
 */
import type { ImageFacts } from '../images/facts/facts.ts';
import type { Container, Pod, PodTemplate } from '../kube/api/objects.ts';
import { imagesUsedBy, type ImageUse } from './pod/images.ts';
import { operatingSystemOf } from './pod/terms.ts';
import type { PlacementInput } from './decision.ts';
import type { NodeClasses } from '../nodes/node-classes.ts';
import { describeArchitectures } from './rules/constraint/no-common.ts';
import { verdictsOf } from './rules/images/fit.ts';
import { namedNodeArchitecture } from './rules/skip.ts';
import { boundedWarnings, maxImageBytes, printable } from '../names/printable.ts';

export interface RunningPodInput {
  readonly pod: Pod | PodTemplate;
  /** The pod before the change; `undefined`: every image is new. */
  readonly oldPod: Pod | undefined;
  /** Architecture of its node; `undefined`: not known, so there is no warning. */
  readonly nodeArchitecture: string | undefined;
  readonly nodes?: NodeClasses | undefined;
  readonly facts: (image: string) => ImageFacts | undefined;
}

/** The images that a change adds to a running pod. `runningPodWarnings` needs their facts. */
export function newImagesOf(pod: Pod | PodTemplate, oldPod: Pod | undefined): readonly ImageUse[] {
  const before = new Map(containersOf(oldPod).map(({ name, image }) => [name, image]));
  return imagesUsedBy(containersOf(pod).filter(({ name, image }) => before.get(name) !== image));
}

/** Warnings for new images that the pod's node cannot run; each at most 256 bytes. */
export function runningPodWarnings(input: RunningPodInput): readonly string[] {
  const { pod, nodeArchitecture } = input;
  if (nodeArchitecture === undefined) return [];
  const os = operatingSystemOf(pod.spec);
  const verdicts = verdictsOf(newImagesOf(pod, input.oldPod), os, input.facts, input.nodes);
  const warnings = verdicts
    .filter(({ architectures }) => architectures !== undefined && !architectures.includes(nodeArchitecture))
    .map((verdict) => {
      const list = printable(describeArchitectures(verdict, os), 60);
      const node = printable(nodeArchitecture, 63);
      return `archwright: image ${printable(verdict.image, maxImageBytes)} cannot run here: it has ${list}, the node is ${node}`;
    });
  return boundedWarnings(warnings);
}

/** Warns of a new pod, or a template, that names its node: the scheduler does not see it, so it starts there. */
export function namedNodeWarnings(input: PlacementInput): readonly string[] {
  const { pod, facts, nodes } = input;
  const nodeArchitecture = namedNodeArchitecture(input);
  return runningPodWarnings({ pod, oldPod: undefined, nodeArchitecture, nodes, facts });
}

function containersOf(pod: Pod | PodTemplate | undefined): readonly Container[] {
  if (pod === undefined) return [];
  const { initContainers, containers, ephemeralContainers } = pod.spec;
  return [...(initContainers ?? []), ...(containers ?? []), ...(ephemeralContainers ?? [])];
}
