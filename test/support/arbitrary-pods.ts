/** Arbitrary pods, facts, policies and nodes from small pools, for frequent matches. */
import * as fc from 'fast-check';
import type { NodeSelectorTerm, Pod, Toleration } from '../../src/kube/api/objects.ts';
import type { NodeGroup, PlacementInput, Pullability } from '../../src/placement/decision.ts';
import type { Policy } from '../../src/policy/effective/policy.ts';
import type { Known } from './placement-input.ts';
import { defaultPolicy, failed, inputOf, seal } from './placement-input.ts';
import type { ModelNode } from './scheduler-model.ts';

const architectures = ['amd64', 'arm64', 's390x', 'constructor'];
const zones = ['a', 'b'];
const architectureKeys = ['kubernetes.io/arch', 'beta.kubernetes.io/arch'];

/** Each architecture in each zone, with and without a taint for its architecture. */
export const nodes: readonly ModelNode[] = architectures.flatMap((architecture) =>
  zones.flatMap((zone) =>
    [false, true].map((tainted) => ({
      name: `${architecture}-${zone}-${tainted ? 'tainted' : 'plain'}`,
      labels: {
        'kubernetes.io/arch': architecture,
        'beta.kubernetes.io/arch': architecture,
        'kubernetes.io/hostname': `${architecture}-${zone}-${tainted ? 'tainted' : 'plain'}`,
        zone,
        ...(tainted ? { pool: `pool-${architecture}` } : {}),
      },
      taints: tainted ? [{ key: 'arch', value: architecture, effect: 'NoSchedule' }] : [],
    })),
  ),
);

const images = ['web:1', 'sidecar:1', 'legacy:1', 'hostile:1', 'artifact:1', 'missing:1', 'new:1'] as const;

export const knownImages: Known = {
  'web:1': 'amd64 arm64 s390x constructor',
  'sidecar:1': 'amd64 arm64 windows/s390x',
  'legacy:1': 'amd64',
  'hostile:1': `amd64 ${'x'.repeat(64)} -arm64 a,b unknown/unknown`,
  'artifact:1': '',
  'missing:1': failed('unauthorized'),
};

const architecture = fc.constantFrom(...architectures);
const values = (pool: readonly string[]): fc.Arbitrary<string[]> =>
  fc.uniqueArray(fc.constantFrom(...pool), { minLength: 1, maxLength: 3 });

const expression = fc.oneof(
  fc.record({
    key: fc.constantFrom(...architectureKeys),
    operator: fc.constantFrom('In', 'NotIn'),
    values: values(architectures),
  }),
  fc.record({ key: fc.constant('zone'), operator: fc.constantFrom('In', 'NotIn'), values: values(zones) }),
  fc.record({
    key: fc.constant('kubernetes.io/hostname'),
    operator: fc.constantFrom('In', 'NotIn'),
    values: values(nodes.map(({ name }) => name)),
  }),
  fc.record({
    key: fc.constantFrom(...architectureKeys, 'zone', 'pool'),
    operator: fc.constantFrom('Exists', 'DoesNotExist'),
  }),
  fc.record({
    key: fc.constantFrom(...architectureKeys, 'zone'),
    operator: fc.constantFrom('Gt', 'Lt'),
    values: fc.constant(['5']),
  }),
);

const field = fc.record({
  key: fc.constant('metadata.name'),
  operator: fc.constantFrom('In', 'NotIn'),
  values: fc.constantFrom(...nodes.map(({ name }) => [name])),
});

const term: fc.Arbitrary<NodeSelectorTerm> = fc.record(
  {
    matchExpressions: fc.array(expression, { maxLength: 3 }),
    matchFields: fc.array(field, { maxLength: 1 }),
  },
  { requiredKeys: [] },
);

export const userToleration: fc.Arbitrary<Toleration> = fc.oneof(
  fc.record(
    {
      key: fc.constantFrom('arch', 'gpu'),
      value: architecture,
      effect: fc.constantFrom('NoSchedule', 'NoExecute'),
    },
    { requiredKeys: ['key', 'value'] },
  ),
  fc.record({ key: fc.constant('gpu'), operator: fc.constant('Exists') }),
  fc.record({ operator: fc.constant('Exists') }),
);

/** Records without a seal, and invalid ones. */
export const hostileRecord = fc.oneof(
  fc.string(),
  fc.json(),
  fc
    .record(
      {
        tolerations: fc.array(userToleration.filter(({ key }) => key !== 'arch')),
        terms: fc.array(fc.array(fc.tuple(fc.constantFrom('zone', 'pool'), values(zones)))),
        made: fc.boolean(),
      },
      { requiredKeys: [] },
    )
    .map((added) => JSON.stringify({ v: 1, imagesKey: '', added })),
  fc.anything().map((added) => JSON.stringify({ v: 1, imagesKey: '', added }) ?? ''),
);

const nodeAffinity = fc.record(
  {
    requiredDuringSchedulingIgnoredDuringExecution: fc.record({
      nodeSelectorTerms: fc.array(term, { minLength: 1, maxLength: 3 }),
    }),
    preferredDuringSchedulingIgnoredDuringExecution: fc.array(
      fc.record({ weight: fc.integer({ min: 1, max: 100 }), preference: term }),
      { maxLength: 2 },
    ),
  },
  { requiredKeys: [] },
);

const named = fc.constantFrom(...images).map((image) => ({ name: `c-${image.slice(0, 3)}`, image }));

/** A valid pod; `annotation` replaces our record. */
export function pods(annotation: fc.Arbitrary<string | undefined>): fc.Arbitrary<Pod> {
  const spec = fc.record(
    {
      containers: fc.array(named, { minLength: 1, maxLength: 3 }),
      initContainers: fc.array(named, { maxLength: 2 }),
      nodeSelector: fc.dictionary(
        fc.constantFrom('zone', ...architectureKeys),
        fc.constantFrom('a', 'amd64', 'arm64'),
        {
          maxKeys: 2,
        },
      ),
      affinity: fc.record({ nodeAffinity }, { requiredKeys: [] }),
      tolerations: fc.array(userToleration, { maxLength: 3 }),
      schedulingGates: fc
        .uniqueArray(fc.constantFrom('arch.example/scheduling-gate', 'x/y'), { maxLength: 2 })
        .map((gates) => gates.map((name) => ({ name }))),
    },
    { requiredKeys: ['containers'] },
  );
  const labels = fc.dictionary(
    fc.constantFrom('zone', 'kubernetes.io/arch', 'arch.example/preferred', 'app'),
    fc.constantFrom('a', 'arm64', 's390x'),
  );
  return fc.record({ spec, labels: fc.option(labels), annotation }).map(({ spec, labels, annotation }) => {
    const metadata = {
      ...(labels ? { labels } : {}),
      ...(annotation === undefined ? {} : { annotations: { 'arch.example/decision': annotation } }),
    };
    // Plain objects, as they come off the wire; fast-check makes some without a prototype.
    return JSON.parse(JSON.stringify({ metadata, spec })) as Pod;
  });
}

export const policies: fc.Arbitrary<Policy> = fc
  .record({
    schedulableArchitectures: fc.constantFrom([], ['amd64', 'arm64']),
    preferences: fc.array(
      fc.record({
        weights: fc.constantFrom({ arm64: 70, amd64: 30 }, { s390x: 1 }, { constructor: 100 }),
        origin: fc.constant('configuration'),
      }),
      { maxLength: 2 },
    ),
    preferenceMode: fc.constantFrom('soft' as const, 'hard' as const),
    allowed: fc.constantFrom(undefined, undefined, ['amd64', 'arm64'], ['s390x']),
    fallbackArchitecture: fc.constantFrom(undefined, 'amd64', 's390x'),
    onUnknownImage: fc.constantFrom('gate' as const, 'fallback' as const, 'allow' as const, 'deny' as const),
    onNoCommonArchitecture: fc.constantFrom('deny' as const, 'pend' as const, 'allow' as const),
    matchNodeLabels: fc.constantFrom([], ['zone'], ['zone'], ['zone', 'kubernetes.io/arch']),
    tolerations: fc.constantFrom(
      [],
      [{ key: 'arch', operator: 'Equal' as const, effect: 'NoSchedule' as const }],
    ),
    requirePullableNodes: fc.boolean(),
    architectures: fc.constantFrom(
      {},
      { arm64: { taintsToTolerate: [], requireNodeLabels: { pool: 'pool-arm64' } } },
      { amd64: { taintsToTolerate: [{ key: 'arch', operator: 'Exists' }], requireNodeLabels: {} } },
    ),
  })
  .map(({ allowed, ...some }) => ({
    ...defaultPolicy,
    ...some,
    ...(allowed && { allowed: { architectures: allowed, origin: 'PodPlacementConfig shop/web' } }),
  }));

/** Credential groups: the nodes of each zone and taint, one without known architectures. */
const groups: readonly NodeGroup[] = Object.entries(
  Object.groupBy(nodes, ({ labels, taints }) => `${labels['zone']}-${taints.length}`),
).map(([fingerprint, own = []], index) => ({
  fingerprint,
  hostnames: own.map((node) => node.name),
  architectures: index === 0 ? [] : own.map(({ labels }) => labels['kubernetes.io/arch'] ?? ''),
}));

/** For each image and group: can pull, cannot pull, unknown. */
const pullability: fc.Arbitrary<ReadonlyMap<string, Pullability>> = fc
  .array(
    fc.tuple(
      fc.constantFrom(...images),
      fc.array(fc.constantFrom('able', 'unable', 'unknown'), {
        minLength: groups.length,
        maxLength: groups.length,
      }),
    ),
    { maxLength: 4 },
  )
  .map(
    (list) =>
      new Map(
        list.map(([image, says]) => [
          image,
          {
            able: groups.filter((_, index) => says[index] === 'able'),
            unable: groups.filter((_, index) => says[index] === 'unable'),
          },
        ]),
      ),
  );

export function inputs(
  annotation: fc.Arbitrary<string | undefined> = fc.constant(undefined),
): fc.Arbitrary<PlacementInput> {
  return fc
    .record({ pod: pods(annotation), policy: policies, known: pullability })
    .map(({ pod, policy, known }) =>
      inputOf(pod, knownImages, policy, { pullability: (image) => known.get(image), seal }),
    );
}
