/** Random pods from small pools: their requirements match some nodes and images. */
import type {
  Container,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  PodSpec,
  Toleration,
} from '../../../src/kube/api/objects.ts';
import { isIn, requiring, termOf } from '../placement-input.ts';
import type { Random } from '../../e2e/random.ts';
import {
  newPodsValues,
  onNoCommonArchitectureValues,
  onUnknownImageValues,
} from '../../../src/policy/effective/policy.ts';
import {
  credentialGroups,
  images,
  nodes,
  policies,
  zones,
  type ModelPolicy,
  type PoolImage,
} from './world.ts';

export interface Case {
  readonly name: string;
  /** As its author wrote it; images are names of repositories. */
  readonly pod: Pod;
  readonly images: readonly PoolImage[];
  /** Whether it has a gate of another controller, which the test removes. */
  readonly hasOtherGate: boolean;
}

export const otherGate = 'other.example/wait';
const architectures = ['amd64', 'arm64', 's390x', 'ppc64le'] as const;
const architectureKeys = ['kubernetes.io/arch', 'beta.kubernetes.io/arch'] as const;
const [arch, beta] = architectureKeys;
/** A RuntimeClass, whose node labels the API server adds to its pods. */
const sandbox = { name: 'sandbox', nodeSelector: { disk: 'ssd' } };

export function generateCase(random: Random, index: number): Case {
  const used: PoolImage[] = [];
  const container = (name: string): Container => {
    const image = drawImage(random);
    used.push(image);
    return { name, image: image.repository };
  };
  const containers = Array.from({ length: random.pick([1, 1, 1, 2, 2, 3]) }, (_, n) => container(`c${n}`));
  const initContainers = random.chance(0.25)
    ? Array.from({ length: random.pick([1, 2]) }, (_, n) => ({
        ...container(`i${n}`),
        ...(random.chance(0.4) && { restartPolicy: 'Always' }),
      }))
    : [];
  const volumes = [];
  if (random.chance(0.06)) {
    const image = drawImage(random);
    used.push(image);
    volumes.push({ name: 'data', image: { reference: image.repository } });
  }
  const hasOtherGate = random.chance(0.04);
  const spec: PodSpec = {
    ...placement(random),
    containers,
    ...(initContainers.length > 0 && { initContainers }),
    ...(volumes.length > 0 && { volumes }),
    ...(hasOtherGate && { schedulingGates: [{ name: otherGate }] }),
  };
  const name = `pod-${index}`;
  const labels = {
    ...(random.chance(0.15) && { zone: random.pick(zones) }),
    ...(random.chance(0.06) && { 'kubernetes.io/arch': random.pick(architectures) }),
    ...(random.chance(0.12) && { 'arch.example/preferred': random.pick(architectures) }),
  };
  const annotations = random.chance(0.08) && {
    'arch.example/preferred-weights': random.pick([
      's390x=90,arm64=10',
      'amd64=1',
      'nonsense',
      'ppc64le=100',
    ]),
  };
  const metadata = {
    name,
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(annotations && { annotations }),
  };
  return { name, pod: { metadata, spec }, images: used, hasOtherGate };
}

/** Settings beyond those that the suites with a cluster start archwright with. */
export function generatePolicy(random: Random, base = random.pick(policies)): ModelPolicy {
  const { name, settings, weights, hard, fallback } = base;
  return {
    name,
    settings,
    weights,
    hard,
    fallback,
    ...(random.chance(0.15) && {
      schedulable: random.pick([
        ['amd64', 'arm64'],
        ['amd64', 's390x', 'ppc64le'],
      ]),
    }),
    ...(random.chance(0.25) && {
      allowed: random.pick([['amd64'], ['arm64', 's390x'], ['amd64', 'ppc64le']]),
    }),
    onUnknown: random.chance(0.6) ? 'gate' : random.pick(onUnknownImageValues),
    onNoCommon: random.pick(onNoCommonArchitectureValues),
    widens: random.chance(0.4),
    ...(random.chance(0.3) && {
      rollout: { architecture: random.pick(architectures), newPods: random.pick(newPodsValues) },
    }),
    ...(random.chance(0.3) && {
      pulls: Object.fromEntries(images.map((each) => [each.repository, pulls(random)])),
    }),
  };
}

function pulls(random: Random): Readonly<Record<string, boolean>> {
  const known = random.some(credentialGroups, random.below(credentialGroups.length + 1));
  return Object.fromEntries(known.map(({ name }) => [name, random.chance(0.6)]));
}

/** Mostly images that are known at once: most pods of several images share an architecture. */
function drawImage(random: Random): PoolImage {
  const common = images.slice(0, 4);
  const [first = images[0], ...rest] = random.chance(0.45) ? common : images;
  return random.pick([first, ...rest]);
}

function placement(random: Random): Partial<PodSpec> {
  const tolerations = random.chance(0.3)
    ? Array.from({ length: random.pick([1, 2]) }, () => toleration(random))
    : [];
  const nodeSelector = random.chance(0.2) ? selector(random) : undefined;
  const nodeAffinity = {
    ...(random.chance(0.45) && {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: Array.from({ length: random.pick([1, 1, 2, 3]) }, () => term(random)),
      },
    }),
    ...(random.chance(0.15) && {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 1 + random.below(100), preference: { matchExpressions: [expression(random)] } },
      ],
    }),
  };
  return {
    ...(tolerations.length > 0 && { tolerations }),
    ...(nodeSelector && { nodeSelector }),
    ...(Object.keys(nodeAffinity).length > 0 && { affinity: { nodeAffinity } }),
  };
}

function selector(random: Random): Record<string, string> {
  return random.pick<Record<string, string>>([
    { zone: random.pick(zones) },
    { disk: 'ssd' },
    { [random.pick(architectureKeys)]: random.pick(architectures) },
    { zone: 'a', disk: 'ssd' },
  ]);
}

function term(random: Random): NodeSelectorTerm {
  if (random.chance(0.04)) return {};
  if (random.chance(0.06)) {
    const [name = ''] = random.some(nodes, 1).map((node) => node.name);
    return {
      matchFields: [{ key: 'metadata.name', operator: random.pick(['In', 'NotIn']), values: [name] }],
    };
  }
  return { matchExpressions: Array.from({ length: random.pick([1, 1, 2]) }, () => expression(random)) };
}

function expression(random: Random): NodeSelectorRequirement {
  return random.pick<() => NodeSelectorRequirement>([
    () => ({ key: 'zone', operator: random.pick(['In', 'NotIn']), values: [random.pick(zones)] }),
    () => ({ key: 'disk', operator: random.pick(['Exists', 'DoesNotExist']) }),
    () => ({ key: 'cores', operator: random.pick(['Gt', 'Lt']), values: ['16'] }),
    () => ({ key: 'tier', operator: 'In', values: ['mainframe', 'other'] }),
    () => ({
      key: random.pick(architectureKeys),
      operator: random.pick(['In', 'NotIn']),
      values: random.some(architectures, random.pick([1, 2])),
    }),
    () => ({
      key: random.pick(architectureKeys),
      operator: random.pick(['Exists', 'Exists', 'DoesNotExist']),
    }),
    () => ({
      key: 'kubernetes.io/hostname',
      operator: random.pick(['In', 'NotIn']),
      values: random.some(
        nodes.map(({ name }) => name),
        2,
      ),
    }),
  ])();
}

function toleration(random: Random): Toleration {
  return random.pick<Toleration>([
    { key: 'gpu', operator: 'Exists' },
    { key: 'gpu', value: 'yes', effect: 'NoSchedule' },
    { key: 'kubernetes.io/arch', operator: 'Equal', value: 'arm64', effect: 'NoSchedule' },
    { key: 'pool', operator: 'Equal', value: random.pick(architectures) },
    { key: 'power', operator: 'Equal', value: '8' },
    { operator: 'Exists' },
  ]);
}

const named = ['amd64', 'amd64', 'amd64', 'arm64', 'arm64', 's390x', 'ppc64le'] as const;
/** Most pods of charts have multi-arch images. Some nodes cannot run `v3-and-arm`; `slow-all` is unknown. */
const usual = ['all', 'all', 'three', 'three', 'two', 'two', 'v3-and-arm', 'slow-all'];

/** How charts name architectures. */
function namedArchitectures(random: Random): Partial<PodSpec> {
  const name = random.pick(named);
  const other = random.pick(named);
  const zone = isIn('zone', random.pick(zones));
  const ssd = { key: 'disk', operator: 'Exists' };
  return random.pick<() => Partial<PodSpec>>([
    () => ({ nodeSelector: { [arch]: name } }),
    () => ({ nodeSelector: { [beta]: name } }),
    () => ({ nodeSelector: { [arch]: name, [beta]: name, zone: 'a' } }),
    () => ({ nodeSelector: { [arch]: name }, ...requiring(termOf(zone), termOf(ssd)) }),
    () => ({ nodeSelector: { [arch]: name }, runtimeClassName: sandbox.name }),
    () => requiring(termOf(isIn(arch, name))),
    () => requiring(termOf(isIn(beta, name)), termOf(isIn(arch, name))),
    () => requiring(termOf(zone, isIn(arch, name)), termOf(isIn(arch, name), ssd)),
    () => requiring(termOf(isIn(arch, name), zone), termOf(isIn(arch, other))),
    () => requiring(termOf(isIn(arch, name, ...(other === name ? [] : [other])))),
    () => requiring(termOf(isIn(arch, name), { key: arch, operator: 'NotIn', values: [other] })),
    () => ({ ...requiring(termOf(isIn(arch, name, 'arm64'), ssd)), nodeSelector: { [beta]: name } }),
  ])();
}

/** A pod that names its architectures, most of the time. */
export function generateChartCase(random: Random, index: number): Case {
  const one = generateCase(random, index);
  if (random.chance(0.25)) return one;
  const { affinity: _affinity, nodeSelector: _, ...spec } = one.pod.spec;
  const pod = { ...one.pod, spec: { ...spec, ...namedArchitectures(random) } };
  if (random.chance(0.3)) return { ...one, pod };
  const repository = random.pick(usual);
  const own = images.filter((each) => each.repository === repository);
  const { initContainers: _init, volumes: _volumes, ...rest } = pod.spec;
  const containers = [{ name: 'app', image: repository }];
  return { ...one, images: own, pod: { ...pod, spec: { ...rest, containers } } };
}
