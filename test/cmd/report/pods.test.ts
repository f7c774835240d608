/** What a report says about one pod: its requests, its verdict, and what blocks it. */
import t from 'tap';
import { requestsOfPod } from '../../../cmd/report/pods.ts';
import { judgePod } from '../../../cmd/report/verdict.ts';
import type { PodSpec } from '../../../src/kube/api/objects.ts';
import { archIn, onArch, requiring, termOf } from '../../support/placement-input.ts';
import { judgedPod } from './judged-cluster.ts';

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

const requires = (architecture: string) => requiring(termOf(archIn(architecture)));

t.test('a pod has all of its blockers, the most important first', async (t) => {
  const images = {
    yes: { image: 'both:1', state: 'ready', verdict: 'yes', why: '' },
    no: { image: 'old:1', state: 'image', verdict: 'no', why: 'x' },
    broken: { image: 'bad:1', state: 'broken', verdict: 'no', why: 'y' },
    unknown: { image: 'gone:1', state: 'unknown', verdict: 'unknown', why: 'z' },
  } as const;
  const amd64 = { verdict: 'pinned', why: 'it requires amd64' } as const;
  const cases: [Partial<PodSpec>, (keyof typeof images)[], ReturnType<typeof judgePod>][] = [
    [{}, ['yes'], { verdict: 'yes', why: '', blockers: [] }],
    [onArch('arm64'), ['yes'], { verdict: 'yes', why: '', blockers: [] }],
    [onArch('amd64'), ['yes'], { ...amd64, blockers: [{ cause: 'selector' }] }],
    [requires('amd64'), ['yes'], { ...amd64, blockers: [{ cause: 'affinity' }] }],
    [requires('arm64'), ['yes'], { verdict: 'yes', why: '', blockers: [] }],
    [{ ...onArch('amd64'), ...requires('amd64') }, ['yes'], { ...amd64, blockers: [{ cause: 'selector' }] }],
    [
      {},
      ['yes', 'broken', 'no'],
      {
        verdict: 'no',
        why: 'y; x',
        blockers: [
          { cause: 'image', image: 'old:1' },
          { cause: 'broken', image: 'bad:1' },
        ],
      },
    ],
    [
      requires('amd64'),
      ['unknown', 'no'],
      {
        verdict: 'no',
        why: 'x',
        blockers: [
          { cause: 'image', image: 'old:1' },
          { cause: 'unknown', image: 'gone:1' },
          { cause: 'affinity' },
        ],
      },
    ],
  ];
  for (const [spec, names, expected] of cases) {
    const { pod } = judgedPod({ name: 'a' });
    const made = { ...pod.made, pod: { spec: { containers: [], ...spec } } };
    const judged = judgePod(
      { ...pod, made },
      {},
      names.map((name) => images[name]),
      'arm64',
    );
    t.strictSame(judged, expected);
  }
});
