/** Which of the pods without a node are kept: those that wait behind our gate, and those that we made pend. */
import type { KubeObject, Pod } from '../../kube/objects.ts';
import { names } from '../../placement/decision.ts';
import { recordedOutcome } from '../../placement/recorded.ts';
import type { WaitingPod } from '../caches.ts';

interface WithManagedFields {
  readonly managedFields?: unknown;
}

/** @returns the pod without managed fields, or `undefined` where it does not concern us */
export function trimWaitingPod(object: KubeObject): WaitingPod | undefined {
  const pod = object as Pod;
  if (pod.spec === undefined || pod.spec.nodeName) return undefined;
  if (!carriesGate(pod) && recordedOutcome(pod) !== 'pending') return undefined;
  const { managedFields: _, ...metadata } = (pod.metadata ?? {}) as NonNullable<Pod['metadata']> &
    WithManagedFields;
  return { pod: { ...pod, metadata } };
}

/** Whether the scheduler leaves a pod alone because of us. */
export function carriesGate({ spec }: Pod): boolean {
  return spec.schedulingGates?.some(({ name }) => name === names.gate) ?? false;
}
