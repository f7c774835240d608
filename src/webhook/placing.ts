/** What is to be decided of an object: the pod itself, or the template of the pods that will come from it. */
import { pullSecretNames } from '../credentials/sources/pull-secrets.ts';
import type { AdmissionRequest, Pod, PodTemplate } from '../kube/api/objects.ts';
import type { PlacementInput } from '../placement/decision.ts';
import type { AdmissionKind } from './metrics.ts';
import type { PullSecretNames } from '../cluster/pull-secrets.ts';
import { podOf } from './validate-pod.ts';
import { templateBefore, templateIn, templatePullSecrets } from './workloads.ts';

export interface Placing extends Pick<PlacementInput, 'template' | 'before'> {
  readonly kind: AdmissionKind;
  readonly pod: Pod | PodTemplate;
  readonly pullSecrets: PullSecretNames;
  /** JSON pointer to the pod in the object; empty for a pod. */
  readonly basePath: string;
}

/**
 * Finds the pod of an object.
 * @param kind of the object: a pod or a workload
 * @throws InvalidObject
 */
export function placingOf(request: AdmissionRequest, kind: Exclude<AdmissionKind, 'other'>): Placing {
  if (kind === 'Pod') {
    const pod = podOf(request.object);
    return { kind, pod, pullSecrets: { names: pullSecretNames(pod.spec) }, basePath: '' };
  }
  const { template: pod, basePath } = templateIn(request);
  const template = kind === 'DaemonSet' ? 'DaemonSet' : 'workload';
  const before = templateBefore(request);
  return {
    kind,
    pod,
    template,
    ...(before && { before }),
    pullSecrets: templatePullSecrets(pod),
    basePath,
  };
}
