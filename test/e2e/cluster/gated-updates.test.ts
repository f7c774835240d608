/** Changes to a gated pod (KEP-3838): a real API server and the model of unit tests accept the same. */
import t from 'tap';
import { KubeError } from '../../../src/kube/api/errors.ts';
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  PodSpec,
} from '../../../src/kube/api/objects.ts';
import { gatedUpdateFaults } from '../../support/gated-model.ts';
import { archIn, isIn, requiring, termOf } from '../../support/placement-input.ts';
import { kubernetes } from '../programs/kubernetes.ts';
import { startCluster } from './harness.ts';
import { podOf, podPath } from './control-plane/pods.ts';

const [ours, theirs, fresh] = ['arch.example/scheduling-gate', 'x.example/theirs', 'x.example/new'].map(
  (name) => ({ name }),
);
const [zone, arch, both] = [isIn('zone', 'a'), archIn('arm64'), archIn('amd64', 'arm64')];
const field = { key: 'metadata.name', operator: 'NotIn', values: ['n'] };

function preferred(weights: readonly number[], ...terms: readonly NodeSelectorTerm[]): Partial<PodSpec> {
  const preferredDuringSchedulingIgnoredDuringExecution = weights.map((weight) => ({
    weight,
    preference: termOf(zone),
  }));
  const required = terms.length > 0 ? requiring(...terms).affinity?.nodeAffinity : {};
  return { affinity: { nodeAffinity: { ...required, preferredDuringSchedulingIgnoredDuringExecution } } };
}
const term = { topologyKey: 'zone', labelSelector: {} };
const podAntiAffinity = {
  preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: term }],
};
const required = (...terms: readonly (readonly NodeSelectorRequirement[])[]): Partial<PodSpec> =>
  requiring(...terms.map((expressions) => (expressions.length > 0 ? termOf(...expressions) : {})));
const tolerations = (...wanted: readonly object[]): object => ({
  tolerations: wanted.map((each) => ({ operator: 'Exists', ...each })),
});
const [a, b] = [{ key: 'a' }, { key: 'b' }];
const evicted = (tolerationSeconds: number) => ({ ...a, effect: 'NoExecute', tolerationSeconds });

/** Parts of the spec before and after; other parts stay. */
type Case = readonly [name: string, before: object, after: object];

const accepted: readonly Case[] = [
  ['nodeSelector: the first key', {}, { nodeSelector: { a: 'b' } }],
  ['nodeSelector: another key', { nodeSelector: { a: 'b' } }, { nodeSelector: { a: 'b', c: 'd' } }],
  ['affinity: none, then two terms', {}, required([arch], [zone])],
  [
    'affinity: of pods only, then of nodes too',
    { affinity: { podAntiAffinity } },
    { affinity: { podAntiAffinity, ...required([arch]).affinity } },
  ],
  ['affinity: preferred only, then required too', preferred([5]), preferred([5], termOf(arch))],
  ['required: an expression appended', required([zone]), required([zone, arch])],
  ['required: a contradiction appended', required([arch]), required([arch, archIn('amd64')])],
  ['required: appended to one of two', required([zone], [both]), required([zone], [both, arch])],
  [
    'required: matchFields only, then expressions',
    requiring({ matchFields: [field] }),
    requiring({ matchFields: [field], ...termOf(arch) }),
  ],
  ['required: an empty term stays', required([], [zone]), required([], [zone, arch])],
  ['preferred: replaced', preferred([5]), preferred([7, 9])],
  ['preferred: removed', preferred([5]), { affinity: { nodeAffinity: {} } }],
  ['tolerations: the first', {}, tolerations(a)],
  ['tolerations: in front', tolerations(a), tolerations(b, a)],
  ['tolerations: other tolerationSeconds', tolerations(evicted(5)), tolerations(evicted(6))],
  ['gates: ours removed', {}, { schedulingGates: [theirs] }],
  ['gates: in another order', {}, { schedulingGates: [ours, theirs] }],
  ['gates and requirement', required([zone]), { ...required([zone, arch]), schedulingGates: [] }],
];

const refused: readonly Case[] = [
  ['nodeSelector: another value', { nodeSelector: { a: 'b' } }, { nodeSelector: { a: 'c' } }],
  ['nodeSelector: a key removed', { nodeSelector: { a: 'b', c: 'd' } }, { nodeSelector: { a: 'b' } }],
  ['required: removed', required([zone]), { affinity: null }],
  ['required: inserted in front', required([zone]), required([arch, zone])],
  ['required: narrowed in place', required([both]), required([arch])],
  ['required: a term added', required([zone]), required([zone], [arch])],
  ['required: a term removed', required([zone], [arch]), required([zone])],
  ['required: terms in another order', required([zone], [arch]), required([arch], [zone])],
  ['required: an empty term gets an expression', required([], [zone]), required([arch], [zone])],
  ['tolerations: removed', tolerations(a), { tolerations: [] }],
  ['tolerations: changed', tolerations(a), tolerations({ ...a, effect: 'NoSchedule' })],
  ['gates: one added', {}, { schedulingGates: [theirs, ours, fresh] }],
  ['other fields: the priority', {}, { priority: 5 }],
  ['other fields: a node', {}, { nodeName: 'n', schedulingGates: [] }],
];

void t.test('API server and model accept the same updates of gated pods', async (t) => {
  const cluster = await startCluster({ apiServerOnly: kubernetes }, t);
  for (const [index, [name, before, after]] of [...accepted, ...refused].entries()) {
    const spec = { schedulingGates: [theirs, ours], ...before } as Partial<PodSpec>;
    const pod = await cluster.create<Pod>(podOf(`case-${index}`, 'registry.example/app:1', spec));
    const body = Object.entries(after).map(([key, value]: [string, unknown]) => {
      return { op: 'add', path: `/spec/${key}`, value };
    });
    const answer = await cluster
      .patch<Pod>(podPath(`case-${index}`), { type: 'json', body })
      .catch((error: unknown) => error);
    if (answer instanceof Error && !(answer instanceof KubeError)) throw answer;
    const isAccepted = index < accepted.length;
    t.equal(!(answer instanceof KubeError), isAccepted, `${name}: ${String(answer)}`);
    // Admission adds two tolerations to each pod, so the accepted pod differs from the sent one.
    const now = answer instanceof KubeError ? { ...pod, spec: { ...pod.spec, ...after } } : (answer as Pod);
    t.equal(gatedUpdateFaults(pod, now).length === 0, isAccepted, `${name}, by the model`);
  }
});
