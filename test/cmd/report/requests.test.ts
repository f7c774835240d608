import t from 'tap';
import { requestsOfPod } from '../../../cmd/report/pods.ts';
import type { PodSpec } from '../../../src/kube/api/objects.ts';

const container = (cpu?: string, memory?: string, more: object = {}): object => ({
  name: 'c',
  ...more,
  resources: { requests: { ...(cpu && { cpu }), ...(memory && { memory }) } },
});
const sidecar = { restartPolicy: 'Always' };

t.test("a pod's requests are counted like the scheduler's", async (t) => {
  const cases: [about: string, spec: object, cpu: number, memory: number][] = [
    ['nothing', { containers: [{ name: 'c' }] }, 0, 0],
    ['no containers', {}, 0, 0],
    ['containers together', { containers: [container('500m', '1Ki'), container('1', '2Ki')] }, 1.5, 3072],
    ['an invalid quantity', { containers: [container('lots', '1Ki')] }, 0, 1024],
    [
      'an init container that requests more CPU than all later containers',
      { initContainers: [container('4', '1Ki')], containers: [container('1', '2Ki')] },
      4,
      2048,
    ],
    [
      'sequential init containers',
      { initContainers: [container('2'), container('3')], containers: [container('1')] },
      3,
      0,
    ],
    [
      'a sidecar beside the containers',
      { initContainers: [container('1', '1Ki', sidecar)], containers: [container('1', '1Ki')] },
      2,
      2048,
    ],
    [
      'an init container beside the sidecars before it',
      {
        initContainers: [
          container('1', undefined, sidecar),
          container('5'),
          container('2', undefined, sidecar),
        ],
        containers: [container('1')],
      },
      6,
      0,
    ],
    [
      'an init container before the sidecar',
      {
        initContainers: [container('5'), container('1', undefined, sidecar)],
        containers: [container('1')],
      },
      5,
      0,
    ],
    [
      'pod-level requests take precedence, per resource',
      { resources: { requests: { cpu: '7' } }, containers: [container('1', '1Ki')] },
      7,
      1024,
    ],
    ['overhead', { overhead: { cpu: '250m', memory: '1Ki' }, containers: [container('1')] }, 1.25, 1024],
  ];
  for (const [about, spec, cpu, memory] of cases)
    t.strictSame(requestsOfPod(spec as PodSpec), { cpu, memory }, about);
});
