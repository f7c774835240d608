/**
 * Random pods: `report` and `check` say that a pod can run on an architecture exactly if it can land, as
 * `explain` places it, on a node of this architecture.
 */
import t from 'tap';
import type { NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec } from '../../src/kube/api/objects.ts';
import { createRandom, seedOfRun, type Random } from '../e2e/random.ts';
import { sized } from '../support/exhaustive.ts';
import { archLabel, betaArchLabel, isIn, podOf, requiring } from '../support/placement-input.ts';
import { multiArch } from '../support/registry/content.ts';
import { selects } from '../support/scheduler-model.ts';
import { startCluster } from './report/cluster.ts';
import { run } from './run.ts';
import { registry, type Explained } from './world.ts';

const architectures: readonly string[] = ['amd64', 'arm64', 's390x'];
const images: Readonly<Record<string, readonly string[]>> = {
  all: architectures,
  two: ['amd64', 'arm64'],
  one: ['arm64'],
  other: ['s390x'],
};

/** A node that has everything that a pod names beside the architecture. */
function canLand({ spec }: Pod, architecture: string): boolean {
  const own = { [archLabel]: architecture, [betaArchLabel]: architecture };
  const labels = { ...own, 'kubernetes.io/hostname': 'n1', zone: 'a' };
  return selects(spec, { name: 'n1', labels, taints: [] });
}

function expression(random: Random): NodeSelectorRequirement {
  const key = random.pick([archLabel, betaArchLabel]);
  const values = random.some([...architectures, 'riscv64'], random.pick([1, 1, 2, 3]));
  return random.pick<NodeSelectorRequirement>([
    isIn('zone', 'a'),
    isIn('kubernetes.io/hostname', 'n1'),
    { key, operator: 'Exists' },
    { key, operator: random.pick(['Exists', 'DoesNotExist']) },
    { key, operator: random.pick(['Gt', 'Lt']), values: ['5'] },
    { key, operator: 'In', values },
    { key, operator: random.pick(['In', 'NotIn']), values },
    { key, operator: 'NotIn', values },
  ]);
}

function term(random: Random): NodeSelectorTerm {
  if (random.chance(0.05)) return {};
  return {
    matchExpressions: Array.from({ length: random.pick([1, 1, 2]) }, () => expression(random)),
    ...(random.chance(0.1) && { matchFields: [isIn('metadata.name', 'n1')] }),
  };
}

function choice(random: Random): Partial<PodSpec> {
  const [stable, beta] = [random.pick(architectures), random.pick(architectures)];
  const selectors = [
    { zone: 'a' },
    { [archLabel]: stable },
    { [betaArchLabel]: beta },
    { [archLabel]: stable, [betaArchLabel]: beta },
  ];
  const terms = Array.from({ length: random.pick([0, 1, 1, 2, 3]) }, () => term(random));
  return {
    ...(random.chance(0.4) && { nodeSelector: random.pick(selectors) }),
    ...(terms.length > 0 && requiring(...terms)),
  };
}

interface Row {
  readonly name: string;
  readonly verdict: string;
}

t.test('report and check agree with the placement of random pods', async (t) => {
  const seed = seedOfRun();
  const random = createRandom(seed);
  const server = await registry(t);
  for (const [name, has] of Object.entries(images))
    server.push(name, '1', multiArch(has.map((architecture) => `linux/${architecture}`)));
  const { store, report } = await startCluster(t);
  const made = Array.from({ length: sized(150, 3000) }, (_, index) => {
    const used = random.some(Object.keys(images), random.pick([1, 1, 1, 2]));
    const metadata = { name: `pod-${index}`, namespace: 'shop' };
    const pod = podOf(
      used.map((image) => `${server.host}/${image}:1`),
      choice(random),
      metadata,
    );
    const common = architectures.filter((each) => used.every((image) => images[image]?.includes(each)));
    return { pod: { apiVersion: 'v1', kind: 'Pod', ...pod }, common };
  });
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: made.map(({ pod }) => pod) });
  const explained = await run(['explain', '-f', '-', '-o', 'json', '--patch'], { stdin });
  const { results } = JSON.parse(explained.out) as { results: Explained[] };
  const cases = made.map((each, index) => {
    const { admitted = false, patched } = results[index] ?? {};
    return { ...each, placed: admitted ? (patched as unknown as Pod) : undefined };
  });
  for (const { pod, placed } of cases)
    store.put(`/api/v1/namespaces/shop/pods/${pod.metadata?.name}`, placed ?? pod);
  for (const architecture of architectures) {
    const checked = await run(['check', '-', '-o', 'json', '-r', architecture, '--no-cache'], { stdin });
    const rows = (JSON.parse(checked.out) as { results: Row[] }).results;
    const missing = new Set(rows.filter(({ verdict }) => verdict !== 'ok').map(({ name }) => name));
    const reported = await report('-o', 'json', '-a', architecture);
    const { workloads } = JSON.parse(reported.out) as { workloads: Row[] };
    const verdicts = new Map(workloads.map(({ name, verdict }) => [name, verdict]));
    const wrong = cases.flatMap(({ pod, placed, common }) => {
      const { name = '' } = pod.metadata ?? {};
      const lands = placed !== undefined && canLand(placed, architecture);
      const unlessNo = lands ? 'yes' : 'pinned';
      const expected = common.includes(architecture) ? unlessNo : 'no';
      const found = [verdicts.get(name), missing.has(name)];
      const isRight = found[0] === expected && found[1] === (expected !== 'yes');
      return isRight ? [] : [{ expected, found, common, spec: pod.spec }];
    });
    t.strictSame(wrong, [], `${architecture}, E2E_SEED=${seed}`);
  }
});
