/**
 * The images of a pod: init containers (including sidecars), containers and image volumes. Ephemeral
 * containers are added to pods that run already (`running-pod.ts`).
 */
import type { PullPolicy } from '../../images/facts/facts.ts';
import type { PodSpec } from '../../kube/api/objects.ts';

export interface ImageUse {
  readonly image: string;
  /** Names of the containers and volumes that use it, in the pod's order. */
  readonly usedBy: readonly string[];
  /** The strictest of its uses: `Always`, then `IfNotPresent`, then `Never`. */
  readonly pullPolicy: PullPolicy;
  /** It is only mounted and never run, so it can be an artifact. */
  readonly volumeOnly: boolean;
}

const demand: Readonly<Record<PullPolicy, number>> = { Never: 0, IfNotPresent: 1, Always: 2 };

/** Images in the order of first use, volumes last. Skips containers without one: the API server refuses them. */
export function imagesOf({ initContainers, containers, volumes }: PodSpec): readonly ImageUse[] {
  const mounted = (volumes ?? []).map(({ name, image }) => ({
    name,
    image: image?.reference,
    imagePullPolicy: image?.pullPolicy,
    volumeOnly: true,
  }));
  return imagesUsedBy([...(initContainers ?? []), ...(containers ?? []), ...mounted]);
}

interface ImageUser {
  readonly name: string;
  readonly image?: string | undefined;
  readonly imagePullPolicy?: string | undefined;
  readonly volumeOnly?: boolean;
}

interface Growing extends ImageUse {
  usedBy: string[];
  pullPolicy: PullPolicy;
}

export function imagesUsedBy(users: readonly ImageUser[]): readonly ImageUse[] {
  const uses = new Map<string, Growing>();
  for (const { name, image, imagePullPolicy, volumeOnly = false } of users) {
    if (!image) continue;
    const pullPolicy = pullPolicyOf(image, imagePullPolicy);
    const use = uses.get(image);
    if (use === undefined) uses.set(image, { image, usedBy: [name], pullPolicy, volumeOnly });
    else {
      use.usedBy.push(name);
      if (demand[pullPolicy] > demand[use.pullPolicy]) use.pullPolicy = pullPolicy;
    }
  }
  return [...uses.values()];
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
