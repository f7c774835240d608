/** Pools for random pods: nodes of four architectures with taints, images, and settings. */
import type {
  NewPods,
  OnNoCommonArchitecture,
  OnUnknownImage,
} from '../../../src/policy/effective/policy.ts';
import type { Settings } from '../../e2e/cluster/archwright/archwright.ts';
import type { FakeNode, Taint } from '../../e2e/cluster/control-plane/nodes.ts';

export const zones = ['a', 'b'] as const;
const podCapacity = 1000;

export interface PoolNode extends FakeNode {
  /** The x86-64 level of its CPU, by labels of Node Feature Discovery. Default: not known. */
  readonly level?: number;
}

function node(name: string, architecture: string, zone: string, more: Partial<PoolNode> = {}): PoolNode {
  const levels = [1, 2, 3, 4]
    .filter((each) => each <= (more.level ?? 0))
    .map((each) => [`feature.node.kubernetes.io/cpu-cpuid.X86_64_V${each}`, 'true'] as const);
  const own = { zone, 'beta.kubernetes.io/arch': architecture, cores: '8' };
  const labels = { ...own, ...Object.fromEntries(levels), ...more.labels };
  return { taints: [], ...more, name, architecture, labels, pods: podCapacity };
}

const containerd1 = 'containerd://1.7.24';
const containerd2 = 'containerd://2.1.4';
const crio = 'cri-o://1.34.1';

const taint = (key: string, value: string, effect = 'NoSchedule'): readonly Taint[] => [
  { key, value, effect },
];

export const nodes: readonly PoolNode[] = [
  node('amd64-a', 'amd64', 'a', { labels: { disk: 'ssd' }, runtime: crio, level: 3 }),
  node('amd64-b', 'amd64', 'b', {
    labels: { cores: '64' },
    taints: taint('pool', 'amd64'),
    runtime: containerd1,
    level: 2,
  }),
  node('amd64-c', 'amd64', 'b', { labels: { disk: 'ssd' }, runtime: containerd2 }),
  node('amd64-gpu', 'amd64', 'a', { taints: taint('gpu', 'yes'), level: 4 }),
  node('arm64-a', 'arm64', 'a', { taints: taint('kubernetes.io/arch', 'arm64'), runtime: containerd1 }),
  node('arm64-b', 'arm64', 'b', { labels: { disk: 'ssd', cores: '64' }, runtime: crio }),
  node('arm64-gpu', 'arm64', 'b', { taints: taint('gpu', 'yes', 'NoExecute') }),
  node('s390x-a', 's390x', 'a', { labels: { tier: 'mainframe' } }),
  node('s390x-b', 's390x', 'b', { taints: taint('pool', 's390x', 'PreferNoSchedule') }),
  node('ppc64le-a', 'ppc64le', 'a', { labels: { disk: 'ssd' }, taints: taint('power', '9') }),
];

/** Nodes with the same credentials. */
export const credentialGroups = Object.entries(
  Object.groupBy(nodes, ({ name }) => (name.startsWith('amd64') ? name.slice(0, 7) : 'others')),
).map(([name, members = []]) => ({ name, members }));

/**
 * When an image becomes known: at once; after a delay longer than admission waits; after registry errors;
 * never.
 */
export type Knowledge = 'at once' | 'slowly' | 'after failures' | 'never';

export interface PoolImage {
  readonly repository: string;
  /** As `linux/arm64`, or `arm64` for short. */
  readonly platforms: readonly string[];
  readonly knowledge: Knowledge;
  readonly private?: boolean;
  /** Default: by the number of platforms. */
  readonly form?: 'index';
}

function image(
  repository: string,
  platforms: string,
  knowledge: Knowledge = 'at once',
  more: Pick<PoolImage, 'private' | 'form'> = {},
): PoolImage {
  return { repository, platforms: platforms.split(' ').filter(Boolean), knowledge, ...more };
}

export const images: readonly [PoolImage, ...PoolImage[]] = [
  image('all', 'amd64 arm64 s390x ppc64le riscv64'),
  image('three', 'amd64 arm64 s390x'),
  image('two', 'amd64 arm64'),
  image('arm', 'arm64 arm/v7'),
  image('intel', 'amd64 386'),
  image('single', 'arm64'),
  image('big', 's390x ppc64le'),
  image('power', 'ppc64le'),
  image('mixed', 'linux/amd64 linux/s390x windows/arm64'),
  image('secret', 'arm64 amd64', 'at once', { private: true }),
  image('nowhere', 'riscv64 loong64'),
  image('x86', '386', 'at once', { form: 'index' }),
  image('x86-alone', '386'),
  image('arm32', 'arm/v7 arm/v6'),
  image('arm32-alone', 'arm/v7'),
  image('v2-alone', 'amd64/v2'),
  image('v3', 'amd64/v3', 'at once', { form: 'index' }),
  image('v3-alone', 'amd64/v3'),
  image('v3-and-arm', 'amd64/v3 arm64'),
  image('v3-and-amd', 'amd64/v3 amd64/v2 amd64'),
  image('slow-x86', '386 arm/v7', 'slowly'),
  image('slow-all', 'amd64 arm64 s390x ppc64le', 'slowly'),
  image('slow-arm', 'arm64', 'slowly'),
  image('slow-two', 'amd64 s390x', 'slowly'),
  image('flaky-two', 'amd64 arm64', 'after failures'),
  image('flaky-power', 'ppc64le s390x', 'after failures'),
  image('absent', '', 'never'),
];

/** The meaning of the settings, for the model. */
export interface ModelPolicy {
  readonly name: string;
  readonly settings: Settings;
  /** Preferred architectures. */
  readonly weights: Readonly<Record<string, number>>;
  /** Whether the preferred architecture is required if possible; a soft preference requires nothing. */
  readonly hard: boolean;
  readonly fallback: string | undefined;
  readonly schedulable?: readonly string[];
  /** Of a `PodPlacementConfig`. */
  readonly allowed?: readonly string[];
  /** Default: `gate`. */
  readonly onUnknown?: OnUnknownImage;
  /** Default: `deny`. */
  readonly onNoCommon?: OnNoCommonArchitecture;
  readonly widens?: boolean;
  readonly rollout?: { readonly architecture: string; readonly newPods: NewPods };
  /** Whether credential groups can pull an image, as far as it is known, if they must. */
  readonly pulls?: Readonly<Record<string, Readonly<Record<string, boolean>>>>;
}

const common: Settings = {
  'on-unknown-image': 'gate',
  tolerations: '[{ key = "pool", operator = "Equal", effect = "NoSchedule" }]',
  architectures:
    '{ s390x = { requireNodeLabels = { tier = "mainframe" } }, ppc64le = { taintsToTolerate = [{ key = "power", operator = "Exists" }] } }',
  'match-node-labels': 'zone,kubernetes.io/arch',
};

export const requiredNodeLabels: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  s390x: { tier: 'mainframe' },
};

/** Taints that the settings tolerate for an architecture. */
export function toleratedFor(architecture: string): readonly { key: string; value?: string }[] {
  return [
    { key: 'pool', value: architecture },
    { key: 'kubernetes.io/arch', value: architecture },
    ...(architecture === 'ppc64le' ? [{ key: 'power' }] : []),
  ];
}

export const policies: readonly ModelPolicy[] = [
  {
    name: 'soft preferences',
    settings: { ...common, 'preferred-weights': 'arm64=80,amd64=20' },
    weights: { arm64: 80, amd64: 20 },
    hard: false,
    fallback: undefined,
  },
  {
    name: 'hard preference and a fallback',
    settings: {
      ...common,
      'preferred-architecture': 'arm64',
      'preference-mode': 'hard',
      'fallback-architecture': 'amd64',
    },
    weights: { arm64: 100 },
    hard: true,
    fallback: 'amd64',
  },
];
