/** The steps of the controller's operations. These tests kill a leader at each of them. */
import { leafNames } from '../../../../src/controller/features/certificates/leaves.ts';

/** Steps in order, by operation. `test/foundation/steps.test.ts` compares them with the sources. */
export const killedAt = {
  // faults-killed.test.ts
  gates: ['gates/decided', 'gates/opened'],
  taints: ['taints/pod', 'taints/pods-done', 'taints/node', 'taints/nodes-done', 'taints/cleared'],
  // faults-killed-certificates.test.ts
  certificates: [
    'certificates/prepared',
    'certificates/authority-issue',
    ...leafNames.map((name) => `certificates/bundle-${name}`),
    'certificates/authority-sign',
    ...leafNames.map((name) => `certificates/issue-${name}`),
    'certificates/authority-retire',
  ],
  'webhook-configuration': ['webhook-configuration/applied', 'webhook-configuration/written'],
  // faults-killed-misplaced.test.ts
  resources: ['resources/status-written'],
  misplaced: ['misplaced/evicted'],
  // rollout.test.ts
  rollouts: ['rollouts/status-written', 'rollouts/before-eviction'],
} as const satisfies Readonly<Record<string, readonly string[]>>;
