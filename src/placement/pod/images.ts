/**
 * The images of a pod: init containers (including sidecars), containers and image volumes. Ephemeral
 * containers are added to pods that run already (`running-pod.ts`).
 */
import type { PullPolicy } from '../../images/facts/facts.ts';
import type { Container, PodSpec } from '../../kube/api/objects.ts';

export interface ImageUse {
  readonly image: string;
  /** Names of the containers and volumes that use it, in the pod's order. */
  readonly usedBy: readonly string[];
  /** The strictest of its uses: `Always`, then `IfNotPresent`, then `Never`. */
  readonly pullPolicy: PullPolicy;
  /** It is only mounted and never run, so it can be an artifact. */
  readonly volumeOnly: boolean;
}

interface Growing extends ImageUse {
  usedBy: string[];
  pullPolicy: PullPolicy;
}

const demand: Readonly<Record<PullPolicy, number>> = { Never: 0, IfNotPresent: 1, Always: 2 };

/** In the order of first use, volumes last. Containers without an image are skipped: the API server refuses them. */
export function imagesOf(spec: PodSpec): readonly ImageUse[] {
  const uses = new Map<string, Growing>();
  for (const container of spec.initContainers ?? []) addContainer(uses, container);
  for (const container of spec.containers ?? []) addContainer(uses, container);
  for (const volume of spec.volumes ?? []) {
    const reference = volume.image?.reference;
    if (reference) add(uses, reference, volume.name, volume.image?.pullPolicy, true);
  }
  return [...uses.values()];
}

export function imagesOfContainers(containers: readonly Container[]): readonly ImageUse[] {
  const uses = new Map<string, Growing>();
  for (const container of containers) addContainer(uses, container);
  return [...uses.values()];
}

function addContainer(uses: Map<string, Growing>, container: Container): void {
  if (container.image) add(uses, container.image, container.name, container.imagePullPolicy, false);
}

function add(
  uses: Map<string, Growing>,
  image: string,
  name: string,
  written: string | undefined,
  volumeOnly: boolean,
): void {
  const pullPolicy = pullPolicyOf(image, written);
  const use = uses.get(image);
  if (use === undefined) {
    uses.set(image, { image, usedBy: [name], pullPolicy, volumeOnly });
    return;
  }
  use.usedBy.push(name);
  if (demand[pullPolicy] > demand[use.pullPolicy]) use.pullPolicy = pullPolicy;
}

/**
 * @param written the policy in the pod; the API server fills it in, a file may not have it
 * @see kubernetes pkg/apis/core/v1/defaults.go and pkg/util/parsers: `Always` for a written or implied tag
 * `latest`
 */
export function pullPolicyOf(image: string, written: string | undefined): PullPolicy {
  if (written === 'Always' || written === 'IfNotPresent' || written === 'Never') return written;
  const at = image.indexOf('@');
  const named = at === -1 ? image : image.slice(0, at);
  const colon = named.indexOf(':', named.lastIndexOf('/'));
  if (colon === -1) return at === -1 ? 'Always' : 'IfNotPresent';
  return named.slice(colon + 1) === 'latest' ? 'Always' : 'IfNotPresent';
}
