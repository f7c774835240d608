/**
 * Changes to a gated pod (KEP-3838), by a real API server and by the model in unit tests. Then our patches of
 * generated pods: the API server refuses none of them.
 *
 *   E2E_SEED    seed of the generated pods; printed
 *   E2E_CASES   number of generated pods
 */
import * as fc from 'fast-check';
import t from 'tap';
import { KubeError } from '../../../src/kube/api/errors.ts';
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  PodSpec,
} from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import type { PlacementInput } from '../../../src/placement/decision.ts';
import { patchGatedPod, ungatedPod } from '../../../src/placement/patch/patch.ts';
import { inputs, knownImages } from '../../support/arbitrary-pods.ts';
import { gatedUpdateFaults } from '../../support/gated-model.ts';
import { factsFrom, inputOf, place, requiring } from '../../support/placement-input.ts';
import { seedOfRun, casesOfRun } from '../random.ts';
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

function valid({ metadata, spec }: Pod): Pod {
  const named = (list: PodSpec['containers'] | undefined, prefix: string): PodSpec['containers'] =>
    (list ?? []).map((container, index) => ({ ...container, name: `${prefix}${index}` }));
  return {
    metadata: metadata ?? {},
    spec: {
      ...spec,
      containers: named(spec.containers, 'c'),
      initContainers: named(spec.initContainers, 'i'),
    },
  };
}

void t.test('updates of gated pods follow the model', async (t) => {
  const cluster = await startCluster({}, t);

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

  await t.test('the API server accepts all our patches', async (t) => {
    const seed = seedOfRun();
    const count = casesOfRun(200);
    t.comment(`E2E_SEED=${seed} E2E_CASES=${count}`);
    const learned = { ...knownImages, 'new:1': 'arm64 s390x', 'missing:1': 'amd64 arm64' };
    let appended = 0;
    for (const [index, generated] of fc.sample(inputs(), { seed, numRuns: count }).entries()) {
      const policy = { ...generated.policy, onUnknownImage: 'gate' as const };
      const pod = valid(generated.pod);
      const isBypassed = index % 3 === 0;
      const admitted = isBypassed ? pod : place({ ...generated, pod, policy }).pod;
      const gates = (admitted.spec.schedulingGates ?? []).filter(({ name }) => name !== ours.name);
      const name = `random-${index}`;
      const spec = { ...admitted.spec, schedulingGates: [...gates, ours] };
      const gated = await created(cluster, name, spec, { ...admitted.metadata, name });
      const input: PlacementInput = {
        ...inputOf(gated, {}, { ...policy, onUnknownImage: 'fallback', onNoCommonArchitecture: 'pend' }),
        facts: factsFrom(learned),
        waiting: true,
        ...(generated.pullability && { pullability: generated.pullability }),
      };
      const patch = patchGatedPod(gated, decide(input));
      if (patch.some(({ path: at }) => at.endsWith('/matchExpressions/-'))) appended += 1;
      const answer = await patched(cluster, name, patch);
      if (typeof answer === 'string') {
        t.fail(answer, { seed, index, gated: gated.spec, patch });
        continue;
      }
      const left = answer.spec.schedulingGates ?? [];
      if (left.some((gate) => gate.name === ours.name) || left.length !== gates.length)
        t.fail('gates', { seed, index, left });
    }
    t.ok(appended > count / 20, `${appended} had expressions appended to terms`);
  });
});
