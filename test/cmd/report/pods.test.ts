/** What a report says about one pod: its requests, its verdict, and what blocks it. */
import t from 'tap';
import { requestsOfPod } from '../../../cmd/report/pods.ts';
import { judgePod } from '../../../cmd/report/verdict.ts';
import type { PodSpec } from '../../../src/kube/api/objects.ts';
import { archIn, onArch, requiring, termOf } from '../../support/placement-input.ts';
import { judgedPod } from './judged-cluster.ts';

/** @param text CPU and memory, `-` for none, and the restart policy */
function container(text: string): object {
  const [cpu = '-', memory = '-', restartPolicy] = text.split(' ');
  const requests = { ...(cpu !== '-' && { cpu }), ...(memory !== '-' && { memory }) };
  return { name: 'c', ...(restartPolicy !== undefined && { restartPolicy }), resources: { requests } };
}

t.test("a pod's requests are counted like the scheduler's", async (t) => {
  const rows: [about: string, init: string[], containers: string[], expected: string, more?: object][] = [
    ['nothing', [], [''], '0 0'],
    ['containers together', [], ['500m 1Ki', '1 2Ki'], '1.5 3072'],
    ['an invalid quantity', [], ['lots 1Ki'], '0 1024'],
    ['an init container that requests more CPU than all later ones', ['4 1Ki'], ['1 2Ki'], '4 2048'],
    ['sequential init containers', ['2', '3'], ['1'], '3 0'],
    ['a sidecar beside the containers', ['1 1Ki Always'], ['1 1Ki'], '2 2048'],
    ['an init container beside the sidecars before it', ['1 - Always', '5', '2 - Always'], ['1'], '6 0'],
    ['an init container before the sidecar', ['5', '1 - Always'], ['1'], '5 0'],
    [
      'pod-level requests take precedence, per resource',
      [],
      ['1 1Ki'],
      '7 1024',
      { resources: { requests: { cpu: '7' } } },
    ],
    ['overhead', [], ['1'], '1.25 1024', { overhead: { cpu: '250m', memory: '1Ki' } }],
  ];
  for (const [about, init, containers, expected, more] of rows) {
    const spec = { initContainers: init.map(container), containers: containers.map(container), ...more };
    const { cpu, memory } = requestsOfPod(spec as unknown as PodSpec);
    t.equal(`${cpu} ${memory}`, expected, about);
  }
  t.strictSame(requestsOfPod({} as PodSpec), { cpu: 0, memory: 0 }, 'no containers');
});

const requires = (architecture: string) => requiring(termOf(archIn(architecture)));

t.test('a pod has all of its blockers, the most important first', async (t) => {
  const images = {
    yes: { image: 'both:1', state: 'ready', verdict: 'yes', why: '' },
    no: { image: 'old:1', state: 'image', verdict: 'no', why: 'x' },
    broken: { image: 'bad:1', state: 'broken', verdict: 'no', why: 'y' },
    unknown: { image: 'gone:1', state: 'unknown', verdict: 'unknown', why: 'z' },
  } as const;
  const amd64 = 'pinned (it requires amd64)';
  const cases: [Partial<PodSpec>, (keyof typeof images)[], verdict: string, ...blockers: string[]][] = [
    [{}, ['yes'], 'yes ()'],
    [onArch('arm64'), ['yes'], 'yes ()'],
    [onArch('amd64'), ['yes'], amd64, 'selector'],
    [requires('amd64'), ['yes'], amd64, 'affinity'],
    [requires('arm64'), ['yes'], 'yes ()'],
    [{ ...onArch('amd64'), ...requires('amd64') }, ['yes'], amd64, 'selector'],
    [{}, ['yes', 'broken', 'no'], 'no (y; x)', 'image old:1', 'broken bad:1'],
    [requires('amd64'), ['unknown', 'no'], 'no (x)', 'image old:1', 'unknown gone:1', 'affinity'],
  ];
  for (const [spec, names, ...expected] of cases) {
    const { pod } = judgedPod({ name: 'a' });
    const made = { ...pod.made, pod: { spec: { containers: [], ...spec } } };
    const judgedImages = names.map((name) => images[name]);
    const { verdict, why, blockers } = judgePod({ ...pod, made }, {}, judgedImages, 'arm64');
    const texts = blockers.map(({ cause, image = '' }) => `${cause} ${image}`.trim());
    t.strictSame([`${verdict} (${why})`, ...texts], expected);
  }
});
