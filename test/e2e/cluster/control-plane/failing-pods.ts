/** Pods that fail on some nodes, by their label `e2e-fails`: kwok's stages. */

/** Longer than any rollout waits for a pod if the others take a second. */
const slowMs = 90_000;

/** kwok's action on pods of these nodes with the label `e2e-fails`: delay after the last state, and the next one. */
interface Stage {
  readonly name: string;
  readonly fails: string;
  readonly from: { readonly phase: 'Pending' | 'Running'; readonly ready: 'In' | 'NotIn' };
  readonly delayMs: number;
  /** Stages without a weight give way to it. */
  readonly weight?: 1;
  readonly ready: boolean;
  readonly restarts?: number;
  /** More fields of the status. */
  readonly more?: string;
}

const stage = (
  nodes: readonly string[],
  { name, fails, from, delayMs, weight, ready, restarts = 0, more = '' }: Stage,
): string => `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: pod-${name} }
spec:
  resourceRef: { apiGroup: v1, kind: Pod }
  selector:
    matchLabels: { e2e-fails: ${fails} }
    matchExpressions:
    - { key: .metadata.deletionTimestamp, operator: DoesNotExist }
    - { key: .spec.nodeName, operator: In, values: [${nodes.join(', ')}] }
    - { key: .status.phase, operator: In, values: [${from.phase}] }
    - key: '.status.conditions.[] | select( .type == "Ready" ) | .status'
      operator: ${from.ready}
      values: ['True']
  ${weight === undefined ? '' : `weight: ${weight}`}
  delay: { durationMilliseconds: ${delayMs} }
  next:
    statusTemplate: |${more}
      conditions:
      - { lastTransitionTime: {{ Now | Quote }}, status: "${ready ? 'True' : 'False'}", type: Ready }
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        name: {{ .name | Quote }}
        ready: ${ready}
        restartCount: ${restarts}
        state: ${restarts > 0 ? '{ waiting: { reason: CrashLoopBackOff } }' : '{ running: { startedAt: {{ Now | Quote }} } }'}
      {{ end }}
`;

const ran = { from: { phase: 'Running', ready: 'In' }, delayMs: 500, ready: false } as const;
const slow = {
  fails: 'slow',
  weight: 1,
  more: '\n      phase: Running\n      startTime: {{ Now | Quote }}',
} as const;
/** Pods with `crash` and `unready` fail a moment after they ran, those with `slow` become ready late. */
export const failures = ['crash', 'unready', 'slow'] as const;

export function failingPods(nodes: readonly string[]): string {
  const unstarted = { from: { phase: 'Pending', ready: 'NotIn' }, delayMs: 0, ready: false } as const;
  const started = { from: { phase: 'Running', ready: 'NotIn' }, delayMs: slowMs, ready: true } as const;
  const all: readonly Stage[] = [
    { name: 'crash', fails: 'crash', ...ran, restarts: 2 },
    { name: 'unready', fails: 'unready', ...ran },
    { name: 'slow-false', ...slow, ...unstarted },
    { name: 'slow-true', ...slow, ...started },
  ];
  return all.map((each) => stage(nodes, each)).join('---');
}
