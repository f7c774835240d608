/**
 * What may change on a gated pod (KEP-3838), measured on a real API server, and that the model which judges our patches
 * elsewhere says the same; then our own patches of generated pods, none of which may be refused.
 *
 *   E2E_SEED    seed of the generated pods; printed
 *   E2E_CASES   how many pods are generated
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
import { factsFrom, inputOf, place } from '../../support/placement-input.ts';
import { seedOfRun } from '../random.ts';
import { patience, startCluster, type Cluster } from './harness.ts';

const ours = { name: 'arch.example/scheduling-gate' };
const theirs = { name: 'x.example/theirs' };
const path = '/api/v1/namespaces/default/pods';

function isIn(key: string, ...values: string[]): NodeSelectorRequirement {
  return { key, operator: 'In', values };
}
const zone = isIn('zone', 'a');
const arch = isIn('kubernetes.io/arch', 'arm64');
const both = isIn('kubernetes.io/arch', 'amd64', 'arm64');
const term = (...matchExpressions: NodeSelectorRequirement[]): NodeSelectorTerm => ({ matchExpressions });
const field = { key: 'metadata.name', operator: 'NotIn', values: ['n'] };

function required(...nodeSelectorTerms: NodeSelectorTerm[]): Partial<PodSpec> {
  return {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  };
}
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
const toleration = (key: string, more: object = {}): Partial<PodSpec> => ({
  tolerations: [{ key, operator: 'Exists', ...more }],
});

interface Case {
  readonly name: string;
  readonly before?: object;
  readonly after: object;
  readonly accepted: boolean;
}

/** Each is a whole part of the spec before and after; what is not named stays. */
const cases: readonly Case[] = [
  { name: 'nodeSelector: the first key', after: { nodeSelector: { a: 'b' } }, accepted: true },
  {
    name: 'nodeSelector: another key',
    before: { nodeSelector: { a: 'b' } },
    after: { nodeSelector: { a: 'b', c: 'd' } },
    accepted: true,
  },
  {
    name: 'nodeSelector: another value',
    before: { nodeSelector: { a: 'b' } },
    after: { nodeSelector: { a: 'c' } },
    accepted: false,
  },
  {
    name: 'nodeSelector: a key less',
    before: { nodeSelector: { a: 'b', c: 'd' } },
    after: { nodeSelector: { a: 'b' } },
    accepted: false,
  },
  { name: 'affinity: none, then a term', after: required(term(arch)), accepted: true },
  { name: 'affinity: none, then two terms', after: required(term(arch), term(zone)), accepted: true },
  {
    name: 'affinity: of pods only, then of nodes too',
    before: { affinity: podAffinity },
    after: { affinity: { ...podAffinity, ...required(term(arch)).affinity } },
    accepted: true,
  },
  {
    name: 'affinity: preferred only, then required too',
    before: preferred(5),
    after: withPreferred(term(arch)),
    accepted: true,
  },
  { name: 'required: taken away', before: required(term(zone)), after: { affinity: null }, accepted: false },
  {
    name: 'required: an expression appended',
    before: required(term(zone)),
    after: required(term(zone, arch)),
    accepted: true,
  },
  {
    name: 'required: the same key once more',
    before: required(term(both)),
    after: required(term(both, arch)),
    accepted: true,
  },
  {
    name: 'required: the same expression once more',
    before: required(term(arch)),
    after: required(term(arch, arch)),
    accepted: true,
  },
  {
    name: 'required: a contradiction appended',
    before: required(term(arch)),
    after: required(term(arch, isIn('kubernetes.io/arch', 'amd64'))),
    accepted: true,
  },
  {
    name: 'required: appended to one of two',
    before: required(term(zone), term(both)),
    after: required(term(zone), term(both, arch)),
    accepted: true,
  },
  {
    name: 'required: inserted in front',
    before: required(term(zone)),
    after: required(term(arch, zone)),
    accepted: false,
  },
  {
    name: 'required: narrowed in place',
    before: required(term(both)),
    after: required(term(arch)),
    accepted: false,
  },
  {
    name: 'required: an expression less',
    before: required(term(zone, arch)),
    after: required(term(zone)),
    accepted: false,
  },
  {
    name: 'required: a term more',
    before: required(term(zone)),
    after: required(term(zone), term(arch)),
    accepted: false,
  },
  {
    name: 'required: a term less',
    before: required(term(zone), term(arch)),
    after: required(term(zone)),
    accepted: false,
  },
  {
    name: 'required: terms in another order',
    before: required(term(zone), term(arch)),
    after: required(term(arch), term(zone)),
    accepted: false,
  },
  {
    name: 'required: matchFields only, then expressions',
    before: required({ matchFields: [field] }),
    after: required({ matchFields: [field], ...term(arch) }),
    accepted: true,
  },
  {
    name: 'required: an empty term gets an expression',
    before: required({}, term(zone)),
    after: required(term(arch), term(zone)),
    accepted: false,
  },
  {
    name: 'required: an empty term stays',
    before: required({}, term(zone)),
    after: required({}, term(zone, arch)),
    accepted: true,
  },
  { name: 'preferred: replaced', before: preferred(5), after: preferred(7, 9), accepted: true },
  {
    name: 'preferred: taken away',
    before: preferred(5),
    after: { affinity: { nodeAffinity: {} } },
    accepted: true,
  },
  { name: 'tolerations: the first', after: toleration('a'), accepted: true },
  {
    name: 'tolerations: in front',
    before: toleration('a'),
    after: { tolerations: [...(toleration('b').tolerations ?? []), ...(toleration('a').tolerations ?? [])] },
    accepted: true,
  },
  { name: 'tolerations: taken away', before: toleration('a'), after: { tolerations: [] }, accepted: false },
  {
    name: 'tolerations: changed',
    before: toleration('a'),
    after: toleration('a', { effect: 'NoSchedule' }),
    accepted: false,
  },
  {
    name: 'tolerations: another time',
    before: toleration('a', { effect: 'NoExecute', tolerationSeconds: 5 }),
    after: toleration('a', { effect: 'NoExecute', tolerationSeconds: 6 }),
    accepted: true,
  },
  { name: 'gates: ours taken away', after: { schedulingGates: [theirs] }, accepted: true },
  { name: 'gates: all taken away', after: { schedulingGates: [] }, accepted: true },
  { name: 'gates: in another order', after: { schedulingGates: [ours, theirs] }, accepted: true },
  {
    name: 'gates: one more',
    after: { schedulingGates: [theirs, ours, { name: 'x.example/new' }] },
    accepted: false,
  },
  {
    name: 'gate and requirement in one patch',
    before: required(term(zone)),
    after: { ...required(term(zone, arch)), schedulingGates: [] },
    accepted: true,
  },
  { name: 'something else: the priority', after: { priority: 5 }, accepted: false },
  { name: 'something else: a node', after: { nodeName: 'n', schedulingGates: [] }, accepted: false },
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

/** @returns the pod as it is then, or what the API server said */
async function patched(cluster: Cluster, name: string, body: readonly object[]): Promise<Pod | string> {
  try {
    return await cluster.client.patch<Pod>(`${path}/${name}`, { type: 'json', body }, { signal: patience() });
  } catch (error) {
    if (error instanceof KubeError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

/** A pod with valid names in it, as a person would have to write it. */
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

void t.test('updates of gated pods', async (t) => {
  const cluster = await startCluster();
  t.teardown(() => cluster.stop());

  await t.test('what is accepted is what the model says', async (t) => {
    for (const [index, { name, before = {}, after, accepted }] of cases.entries()) {
      const pod = await created(cluster, `case-${index}`, before);
      const body = Object.entries(after).map(([key, value]) => ({
        op: 'add',
        path: `/spec/${key}`,
        value: value as unknown,
      }));
      const answer = await patched(cluster, `case-${index}`, body);
      t.equal(
        typeof answer !== 'string',
        accepted,
        `${name}: ${typeof answer === 'string' ? answer : 'accepted'}`,
      );
      // Admission gives each pod two tolerations, so what was accepted is not what was sent.
      const now = typeof answer === 'string' ? { ...pod, spec: { ...pod.spec, ...after } } : answer;
      t.equal(gatedUpdateFaults(pod, now).length === 0, accepted, `${name}, by the model`);
    }
  });

  await t.test('a pod that changed meanwhile is a conflict, one that is gone is not found', async (t) => {
    const pod = await created(cluster, 'stale', {});
    const label = [{ op: 'add', path: '/metadata/labels', value: { changed: 'yes' } }];
    t.type(await patched(cluster, 'stale', label), 'object');
    t.match(await patched(cluster, 'stale', ungatedPod(pod)), /^conflict: /u);
    t.match(await patched(cluster, 'nowhere', ungatedPod(pod)), /^not-found: /u);
  });

  await t.test('none of our patches is refused', async (t) => {
    const seed = seedOfRun();
    const count = Number(process.env['E2E_CASES'] ?? 200);
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
