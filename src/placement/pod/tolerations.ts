/** Tolerations of a pod, compared by what they mean. */
import type { Toleration } from '../../kube/api/objects.ts';

/**
 * Whether `present` tolerates every taint that `wanted` tolerates, for at least as long.
 * @see kubernetes component-helpers scheduling/corev1 Toleration.ToleratesTaint
 */
export function covers(present: Toleration, wanted: Toleration): boolean {
  if (present.effect && present.effect !== wanted.effect) return false;
  if (secondsOf(present) < secondsOf(wanted)) return false;
  const operator = present.operator || 'Equal';
  if (operator === 'Exists') return !present.key || present.key === wanted.key;
  return (
    operator === 'Equal' &&
    (wanted.operator || 'Equal') === 'Equal' &&
    present.key === wanted.key &&
    (present.value ?? '') === (wanted.value ?? '')
  );
}

function secondsOf({ tolerationSeconds }: Toleration): number {
  return tolerationSeconds ?? Number.POSITIVE_INFINITY;
}

/** Whether two tolerations are equal once the API server's defaults are filled in. */
export function sameToleration(a: Toleration, b: Toleration): boolean {
  return (
    (a.key ?? '') === (b.key ?? '') &&
    (a.operator ?? 'Equal') === (b.operator ?? 'Equal') &&
    (a.value ?? '') === (b.value ?? '') &&
    (a.effect ?? '') === (b.effect ?? '') &&
    (a.tolerationSeconds ?? undefined) === (b.tolerationSeconds ?? undefined)
  );
}
