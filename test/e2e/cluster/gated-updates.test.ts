/** Changes to a gated pod (KEP-3838): a real API server and the model of unit tests accept the same. */
import t from 'tap';
import { KubeError } from '../../../src/kube/api/errors.ts';
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  PodSpec,
} from '../../../src/kube/api/objects.ts';
import { ungatedPod } from '../../../src/placement/patch/patch.ts';
import { gatedUpdateFaults } from '../../support/gated-model.ts';
import { requiring } from '../../support/placement-input.ts';
import { kubernetes } from '../programs/kubernetes.ts';
import { startCluster, type Cluster } from './harness.ts';

const ours = { name: 'arch.example/scheduling-gate' };
const theirs = { name: 'x.example/theirs' };
const path = '/api/v1/namespaces/default/pods';

function isIn(key: string, ...values: string[]): NodeSelectorRequirement {
  return { key, operator: 'In', values };
}
const zone = isIn('zone', 'a');
const arch = isIn('kubernetes.io/arch', 'arm64');
const intel = isIn('kubernetes.io/arch', 'amd64');
const both = isIn('kubernetes.io/arch', 'amd64', 'arm64');
const term = (...matchExpressions: NodeSelectorRequirement[]): NodeSelectorTerm => ({ matchExpressions });
const field = { key: 'metadata.name', operator: 'NotIn', values: ['n'] };

const required = (...terms: NodeSelectorTerm[]): Partial<PodSpec> => requiring(...terms);

function preferred(...weights: number[]): Partial<PodSpec> {
  const terms = weights.map((weight) => ({ weight, preference: term(zone) }));
  return { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: terms } } };
}
function withPreferred(...terms: NodeSelectorTerm[]): Partial<PodSpec> {
  const nodeAffinity = {
    ...required(...terms).affinity?.nodeAffinity,
    ...preferred(5).affinity?.nodeAffinity,
  };
  return { affinity: { nodeAffinity } };
}
const podAffinity = {
  podAntiAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight: 1, podAffinityTerm: { topologyKey: 'zone', labelSelector: {} } },
    ],
  },
};
function tolerations(...wanted: readonly (readonly [key: string, more?: object])[]): Partial<PodSpec> {
  return { tolerations: wanted.map(([key, more]) => ({ key, operator: 'Exists', ...more })) };
}

type Spec = Partial<PodSpec> | Readonly<Record<string, unknown>>;
type Case = readonly [name: string, before: Spec, after: Spec];

/** Parts of the spec before and after; other parts stay. */
const accepted: readonly Case[] = [
  ['nodeSelector: the first key', {}, { nodeSelector: { a: 'b' } }],
  ['nodeSelector: another key', { nodeSelector: { a: 'b' } }, { nodeSelector: { a: 'b', c: 'd' } }],
  ['affinity: none, then a term', {}, required(term(arch))],
  ['affinity: none, then two terms', {}, required(term(arch), term(zone))],
  [
    'affinity: of pods only, then of nodes too',
    { affinity: podAffinity },
    { affinity: { ...podAffinity, ...required(term(arch)).affinity } },
  ],
  ['affinity: preferred only, then required too', preferred(5), withPreferred(term(arch))],
  ['required: an expression appended', required(term(zone)), required(term(zone, arch))],
  ['required: the same key again', required(term(both)), required(term(both, arch))],
  ['required: the same expression again', required(term(arch)), required(term(arch, arch))],
  ['required: a contradiction appended', required(term(arch)), required(term(arch, intel))],
  [
    'required: appended to one of two',
    required(term(zone), term(both)),
    required(term(zone), term(both, arch)),
  ],
  [
    'required: matchFields only, then expressions',
    required({ matchFields: [field] }),
    required({ matchFields: [field], ...term(arch) }),
  ],
  ['required: an empty term stays', required({}, term(zone)), required({}, term(zone, arch))],
  ['preferred: replaced', preferred(5), preferred(7, 9)],
  ['preferred: removed', preferred(5), { affinity: { nodeAffinity: {} } }],
  ['tolerations: the first', {}, tolerations(['a'])],
  ['tolerations: in front', tolerations(['a']), tolerations(['b'], ['a'])],
  [
    'tolerations: other tolerationSeconds',
    tolerations(['a', { effect: 'NoExecute', tolerationSeconds: 5 }]),
    tolerations(['a', { effect: 'NoExecute', tolerationSeconds: 6 }]),
  ],
  ['gates: ours removed', {}, { schedulingGates: [theirs] }],
  ['gates: all removed', {}, { schedulingGates: [] }],
  ['gates: in another order', {}, { schedulingGates: [ours, theirs] }],
  [
    'gate and requirement in one patch',
    required(term(zone)),
    { ...required(term(zone, arch)), schedulingGates: [] },
  ],
];

const refused: readonly Case[] = [
  ['nodeSelector: another value', { nodeSelector: { a: 'b' } }, { nodeSelector: { a: 'c' } }],
  ['nodeSelector: a key removed', { nodeSelector: { a: 'b', c: 'd' } }, { nodeSelector: { a: 'b' } }],
  ['required: removed', required(term(zone)), { affinity: null }],
  ['required: inserted in front', required(term(zone)), required(term(arch, zone))],
  ['required: narrowed in place', required(term(both)), required(term(arch))],
  ['required: an expression removed', required(term(zone, arch)), required(term(zone))],
  ['required: a term added', required(term(zone)), required(term(zone), term(arch))],
  ['required: a term removed', required(term(zone), term(arch)), required(term(zone))],
  ['required: terms in another order', required(term(zone), term(arch)), required(term(arch), term(zone))],
  ['required: an empty term gets an expression', required({}, term(zone)), required(term(arch), term(zone))],
  ['tolerations: removed', tolerations(['a']), { tolerations: [] }],
  ['tolerations: changed', tolerations(['a']), tolerations(['a', { effect: 'NoSchedule' }])],
  ['gates: one added', {}, { schedulingGates: [theirs, ours, { name: 'x.example/new' }] }],
  ['other fields: the priority', {}, { priority: 5 }],
  ['other fields: a node', {}, { nodeName: 'n', schedulingGates: [] }],
];

async function created(cluster: Cluster, name: string, spec: object, metadata: object = {}): Promise<Pod> {
  const containers = [{ name: 'c', image: 'registry.example/app:1' }];
  return cluster.create<Pod>({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers, schedulingGates: [theirs, ours], ...spec },
  });
}

async function patched(cluster: Cluster, name: string, body: readonly object[]): Promise<Pod | string> {
  try {
    return await cluster.patch<Pod>(`${path}/${name}`, { type: 'json', body });
  } catch (error) {
    if (error instanceof KubeError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

void t.test('updates of gated pods follow the model', async (t) => {
  const cluster = await startCluster({ apiServerOnly: kubernetes }, t);

  await t.test('API server and model accept the same updates', async (t) => {
    for (const [index, [name, before, after]] of [...accepted, ...refused].entries()) {
      const pod = await created(cluster, `case-${index}`, before);
      const body = Object.entries(after).map(([key, value]) => ({
        op: 'add',
        path: `/spec/${key}`,
        value,
      }));
      const answer = await patched(cluster, `case-${index}`, body);
      const isAccepted = index < accepted.length;
      t.equal(
        typeof answer !== 'string',
        isAccepted,
        `${name}: ${typeof answer === 'string' ? answer : 'accepted'}`,
      );
      // Admission adds two tolerations to each pod, so the accepted pod differs from the sent one.
      const now = typeof answer === 'string' ? { ...pod, spec: { ...pod.spec, ...after } } : answer;
      t.equal(gatedUpdateFaults(pod, now).length === 0, isAccepted, `${name}, by the model`);
    }
  });

  await t.test('a patch of a changed pod is a conflict, of a deleted pod not found', async (t) => {
    const pod = await created(cluster, 'stale', {});
    const label = [{ op: 'add', path: '/metadata/labels', value: { changed: 'yes' } }];
    t.type(await patched(cluster, 'stale', label), 'object');
    t.match(await patched(cluster, 'stale', ungatedPod(pod)), /^conflict: /u);
    t.match(await patched(cluster, 'nowhere', ungatedPod(pod)), /^not-found: /u);
  });
});
