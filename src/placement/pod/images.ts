/**
 * The images of a pod: init containers (sidecars are among them), containers and image volumes. Ephemeral containers
 * come to pods that are placed already; `running-pod.ts` looks at them.
 */
import type { PullPolicy } from '../../images/facts/facts.ts';
import type { Container, PodSpec } from '../../kube/api/objects.ts';

export interface ImageUse {
  /** As the pod writes it. */
  readonly image: string;
  /** Names of the containers and volumes that use it, in the pod's order. */
  readonly usedBy: readonly string[];
  /** The most demanding of its uses: `Always` before `IfNotPresent` before `Never`. */
  readonly pullPolicy: PullPolicy;
  /** True where it is only mounted, never run: an artifact is then all right. */
  readonly volumeOnly: boolean;
}

interface Growing extends ImageUse {
  usedBy: string[];
  pullPolicy: PullPolicy;
  volumeOnly: boolean;
}

const demand: Readonly<Record<PullPolicy, number>> = { Never: 0, IfNotPresent: 1, Always: 2 };

/**
 * The images of a pod that decide where it can run, each once.
 * @param spec of a pod or a template
 * @returns in the order of first use; containers without an image are left to the API server's validation
 */
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

/** The images of containers alone, in the same form. */
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
  if (!volumeOnly) use.volumeOnly = false;
}

/**
 * The pull policy that holds for an image.
 * @param image as the pod writes it
 * @param written the policy that the pod states; the API server fills it in, a file from a person may lack it
 * @see kubernetes pkg/apis/core/v1/defaults.go and pkg/util/parsers: `Always` for the tag `latest`, written or implied
 */
export function pullPolicyOf(image: string, written: string | undefined): PullPolicy {
  if (written === 'Always' || written === 'IfNotPresent' || written === 'Never') return written;
  const at = image.indexOf('@');
  const named = at === -1 ? image : image.slice(0, at);
  const colon = named.indexOf(':', named.lastIndexOf('/') + 1);
  if (colon === -1) return at === -1 ? 'Always' : 'IfNotPresent';
  return named.slice(colon + 1) === 'latest' ? 'Always' : 'IfNotPresent';
}
