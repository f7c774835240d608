/**
 * Pods that are left alone, each for a counted reason. What stands here as a comparison of plain fields is also a match
 * condition of the webhook configuration, so that the API server does not even call.
 */
import type { ObjectMeta, PodSpec } from '../../kube/api/objects.ts';
import { own } from '../../names/architecture.ts';
import { keys } from '../../names/keys.ts';
import type { PlacementInput, SkipReason } from '../decision.ts';
import { imagesOf } from '../pod/images.ts';
import type { ImageUse } from '../pod/images.ts';

/** Set by the kubelet on the API's copy of a static pod (kubernetes pkg/kubelet/types/constants.go). */
const mirrorAnnotation = 'kubernetes.io/config.mirror';

const controlPlaneRoles = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

type SkipInput = Pick<PlacementInput, 'pod' | 'namespace' | 'namespaceLabels' | 'policy'>;

/**
 * Why a pod is left alone.
 * @param input facts are not needed: this can be asked before any image is looked at
 * @param uses the pod's images, where the caller has them already
 * @returns the first reason that holds, in the order of `skipReasons`; `undefined`: it has to be decided
 */
export function skipReasonOf(input: SkipInput, uses?: readonly ImageUse[]): SkipReason | undefined {
  const { spec, metadata } = input.pod;
  if (spec.nodeName) return 'node-name';
  if (own(metadata?.annotations, mirrorAnnotation) !== undefined) return 'mirror-pod';
  if (metadata?.ownerReferences?.some((owner) => owner.kind === 'DaemonSet')) return 'daemonset-pod';
  const optedOut = optOutOf(input);
  if (optedOut !== undefined) return optedOut;
  if (choosesControlPlane(spec)) return 'control-plane';
  if ((uses ?? imagesOf(spec)).every((use) => use.pullPolicy === 'Never')) return 'no-image';
  return undefined;
}

/** Whether somebody said that a pod is to be left alone; that holds for one that runs already too. */
export function optOutOf({ pod, namespace, namespaceLabels, policy }: SkipInput): SkipReason | undefined {
  if (policy.excludedNamespaces.includes(namespace)) return 'excluded-namespace';
  if (disabled(pod.metadata)) return 'disabled-by-pod';
  return own(namespaceLabels, keys.placement) === 'disabled' ? 'disabled-by-namespace' : undefined;
}

/** The label is what match conditions read; the annotation is accepted too, since people try both. */
function disabled(metadata: ObjectMeta | undefined): boolean {
  return (
    own(metadata?.labels, keys.placement) === 'disabled' ||
    own(metadata?.annotations, keys.placement) === 'disabled'
  );
}

function choosesControlPlane(spec: PodSpec): boolean {
  return controlPlaneRoles.some((role) => own(spec.nodeSelector, role) !== undefined);
}
