import t from 'tap';
import { defaultConfiguration, type Configuration } from '../../../src/policy/configuration/configuration.ts';
import { policyFor } from '../../../src/policy/effective/policies.ts';
import type { OnUnknownImage } from '../../../src/policy/effective/policy.ts';
import {
  readClusterConfig,
  readPodConfig,
  type ClusterPlacement,
  type PodPlacement,
} from '../../../src/policy/resources/placement.ts';
import { clusterConfig, podConfig } from '../resources/objects.ts';
import { like } from '../../support/like.ts';

function policy(values: Partial<Configuration>) {
  return policyFor({ ...defaultConfiguration(), ...values });
}

const nothing = readClusterConfig(clusterConfig({})).value as ClusterPlacement;
const pod = readPodConfig(podConfig({})).value as PodPlacement;

const architectureTaint = { key: 'kubernetes.io/arch', operator: 'Equal', effect: 'NoSchedule' } as const;

t.test('without settings the defaults apply', async (t) => {
  t.strictSame(policy({}), {
    schedulableArchitectures: [],
    preferences: [],
    preferenceMode: 'soft',
    fallbackArchitecture: undefined,
    onUnknownImage: 'allow',
    onNoCommonArchitecture: 'deny',
    constraints: 'keep',
    matchNodeLabels: [],
    tolerations: [architectureTaint],
    architectures: {},
    excludedNamespaces: ['kube-*', 'openshift-*'],
    requirePullableNodes: false,
  });
});

t.test('preferredArchitecture is a weight of 100; preferredWeights are kept', async (t) => {
  const origin = 'configuration';
  t.strictSame(policy({ preferredArchitecture: 'arm64' }).preferences, [{ weights: { arm64: 100 }, origin }]);
  const weights = { arm64: 80, amd64: 20 };
  t.strictSame(policy({ preferredWeights: weights }).preferences, [{ weights, origin }]);
});

t.test(
  'unknown images are gated only while a controller leads; else the fallback or `allow` applies',
  async (t) => {
    type Case = [
      wanted: OnUnknownImage | undefined,
      fallback: string | undefined,
      alone: string,
      led: string,
    ];
    const cases: Case[] = [
      [undefined, undefined, 'allow', 'gate'],
      [undefined, 'amd64', 'fallback', 'gate'],
      ['gate', undefined, 'allow', 'gate'],
      ['gate', 'amd64', 'fallback', 'gate'],
      ['fallback', 'amd64', 'fallback', 'fallback'],
      ['allow', 'amd64', 'allow', 'allow'],
      ['deny', 'amd64', 'deny', 'deny'],
    ];
    for (const [onUnknownImage, fallbackArchitecture, alone, led] of cases) {
      const configuration = { ...defaultConfiguration(), onUnknownImage, fallbackArchitecture };
      const name = `${onUnknownImage ?? 'not set'}, fallback ${fallbackArchitecture ?? 'not set'}`;
      t.equal(policyFor(configuration).onUnknownImage, alone, name);
      t.equal(policyFor(configuration, { mayGate: false }).onUnknownImage, alone, name);
      t.equal(policyFor(configuration, { mayGate: true }).onUnknownImage, led, name);
      const layers = { pods: [{ ...pod, onUnknownImage }], mayGate: true };
      const unset = { ...configuration, onUnknownImage: undefined };
      t.equal(policyFor(unset, layers).onUnknownImage, led, `${name}, set by an object`);
    }
  },
);

t.test('the first object with a setting wins, then the cluster, then the configuration', async (t) => {
  const configuration: Configuration = {
    ...defaultConfiguration(),
    preferredArchitecture: 'amd64',
    preferenceMode: 'hard',
    fallbackArchitecture: 'amd64',
    onNoCommonArchitecture: 'allow',
    requirePullableNodes: true,
    constraints: 'widen',
  };
  const cluster: ClusterPlacement = {
    ...nothing,
    weights: { s390x: 100 },
    fallbackArchitecture: 's390x',
    constraints: 'keep',
  };
  const first: PodPlacement = {
    ...pod,
    name: 'first',
    onUnknownImage: 'deny',
    weights: { arm64: 80, arm: 20 },
  };
  const second: PodPlacement = {
    ...pod,
    name: 'second',
    onUnknownImage: 'allow',
    onNoCommonArchitecture: 'pend',
    fallbackArchitecture: 'arm64',
    weights: { riscv64: 1 },
    constraints: 'widen',
  };
  like(t, policyFor(configuration, { cluster, pods: [first, second] }), {
    preferences: [
      { weights: { arm64: 80, arm: 20 }, origin: 'PodPlacementConfig shop/first' },
      { weights: { riscv64: 1 }, origin: 'PodPlacementConfig shop/second' },
      { weights: { s390x: 100 }, origin: 'ClusterPodPlacementConfig cluster' },
      { weights: { amd64: 100 }, origin: 'configuration' },
    ],
    fallbackArchitecture: 'arm64',
    onUnknownImage: 'deny',
    onNoCommonArchitecture: 'pend',
    constraints: 'widen',
  });
  like(t, policyFor(configuration, { cluster }), {
    preferences: [
      { weights: { s390x: 100 }, origin: 'ClusterPodPlacementConfig cluster' },
      { weights: { amd64: 100 }, origin: 'configuration' },
    ],
    preferenceMode: 'hard',
    fallbackArchitecture: 's390x',
    onNoCommonArchitecture: 'allow',
    requirePullableNodes: true,
    constraints: 'keep',
  });
  t.strictSame(
    policyFor(configuration, { cluster: nothing, pods: [pod] }),
    policyFor(configuration),
    'objects without settings change nothing',
  );
});

t.test('the first object with architectures limits the pod, even to unschedulable ones', async (t) => {
  const configuration = { ...defaultConfiguration(), schedulableArchitectures: ['amd64', 'arm64'] };
  const first = { ...pod, name: 'first', architectures: ['arm64', 's390x'] };
  const second = { ...pod, name: 'second', architectures: ['amd64'] };
  const { allowed } = policyFor(configuration, { pods: [pod, first, second] });
  t.strictSame(allowed, { architectures: ['arm64', 's390x'], origin: 'PodPlacementConfig shop/first' });
  const unschedulable = policyFor(configuration, { pods: [{ ...pod, architectures: ['s390x'] }] });
  t.strictSame(unschedulable.allowed?.architectures, ['s390x'], 'removing it would allow every architecture');
  t.equal(policyFor(configuration, { pods: [pod] }).allowed, undefined);
});

t.test('of the fallbacks, the first schedulable one applies', async (t) => {
  const configuration = { ...defaultConfiguration(), schedulableArchitectures: ['amd64', 'arm64'] };
  const pods = [
    { ...pod, fallbackArchitecture: 's390x' },
    { ...pod, name: 'other', fallbackArchitecture: 'arm64' },
  ];
  const cluster = { ...nothing, fallbackArchitecture: 'ppc64le' };
  t.equal(policyFor(configuration, { pods, cluster }).fallbackArchitecture, 'arm64');
  t.equal(policyFor(configuration, { cluster }).fallbackArchitecture, undefined);
});

t.test(
  "archwright's own taints and that of the architecture are tolerated, unless a template covers them",
  async (t) => {
    const ours = { key: 'arch.example/architecture', operator: 'Equal', effect: 'NoSchedule' } as const;
    const wider = { key: 'arch.example/architecture', operator: 'Equal' } as const;
    const other = { key: 'arch', operator: 'Equal' } as const;
    const covering = { key: 'kubernetes.io/arch', operator: 'Equal' } as const;
    const narrower = { ...covering, effect: 'NoExecute' } as const;
    const all = { taintArchitectures: ['*'] };
    const off = { tolerateArchitectureTaint: false };
    const rows: [Partial<Configuration>, ...Configuration['tolerations']][] = [
      [{ taintArchitectures: ['arm64'] }, ours, architectureTaint],
      [
        { ...all, ...off, taintKey: 'pool' },
        { ...ours, key: 'pool' },
      ],
      [{ ...all, tolerations: [wider] }, wider, architectureTaint],
      [{ ...all, taintKey: 'kubernetes.io/arch' }, architectureTaint],
      [{ tolerations: [other] }, other, architectureTaint],
      [{ ...off, tolerations: [other] }, other],
      [{ tolerations: [covering] }, covering],
      [{ tolerations: [architectureTaint] }, architectureTaint],
      [{ tolerations: [narrower] }, narrower, architectureTaint],
    ];
    for (const [values, ...expected] of rows)
      t.strictSame(policy(values).tolerations, expected, JSON.stringify(values));
  },
);

t.test('labels of other programs are read with compat.labels', async (t) => {
  t.equal(policy({}).preferredLabels, undefined);
  t.strictSame(policy({ 'compat.labels': true }).preferredLabels, ['arch.noe.adevinta.com/preferred']);
});

t.test("archwright's own namespace is excluded in addition to the configured ones", async (t) => {
  t.strictSame(policy({ namespace: 'archwright' }).excludedNamespaces, [
    'kube-*',
    'openshift-*',
    'archwright',
  ]);
  t.strictSame(policy({ namespace: 'a', excludedNamespaces: ['a', 'b'] }).excludedNamespaces, ['a', 'b']);
  t.strictSame(policy({ namespace: 'a', excludedNamespaces: [] }).excludedNamespaces, ['a']);
});
