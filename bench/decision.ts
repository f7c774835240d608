/** Decision and patch with facts in memory: `npm run bench:decision`. Budget: a pod of 3 containers. */
import { decide } from '../src/placement/decide.ts';
import type { PlacementInput } from '../src/placement/decision.ts';
import { patchPod } from '../src/placement/patch/patch.ts';
import type { ImageFacts } from '../src/images/facts/facts.ts';
import type { NodeSelectorTerm, Pod } from '../src/kube/api/objects.ts';
import type { Policy } from '../src/policy/effective/policy.ts';
import { percentile } from './support/load.ts';
import { printSection, type Section } from './support/section.ts';
import { table } from './support/table.ts';

const budgetMicros = 30;

const policy: Policy = {
  schedulableArchitectures: ['amd64', 'arm64', 's390x'],
  preferences: [{ weights: { arm64: 80, amd64: 20 }, origin: 'configuration' }],
  preferenceMode: 'soft',
  fallbackArchitecture: 'amd64',
  onUnknownImage: 'gate',
  onNoCommonArchitecture: 'deny',
  constraints: 'keep',
  matchNodeLabels: ['topology.kubernetes.io/zone'],
  tolerations: [{ key: 'supported-arch', operator: 'Equal', effect: 'NoSchedule' }],
  architectures: { arm64: { taintsToTolerate: [], requireNodeLabels: { pool: 'arm' } } },
  excludedNamespaces: ['kube-system'],
  requirePullableNodes: false,
};

const known: ImageFacts = {
  image: '',
  platforms: ['amd64', 'arm64', 's390x', 'ppc64le', 'riscv64'].map((architecture) => ({
    os: 'linux',
    architecture,
  })),
  source: 'memory',
  credentialSource: 'anonymous',
  endpoint: 'public.example',
  confirmedAt: '2026-11-21T00:00:00Z',
  stale: false,
};

function podWith(containers: number, terms: number): Pod {
  const nodeSelectorTerms: NodeSelectorTerm[] = Array.from({ length: terms }, (_, index) => ({
    matchExpressions: [{ key: 'zone', operator: 'In', values: [`zone-${index}`] }],
  }));
  return {
    metadata: { labels: { app: 'shop' }, annotations: { team: 'shop' } },
    spec: {
      containers: Array.from({ length: containers }, (_, index) => ({
        name: `container-${index}`,
        image: `public.example/shop/service-${index}:1.${index}`,
        imagePullPolicy: 'IfNotPresent',
      })),
      tolerations: [
        {
          key: 'node.kubernetes.io/not-ready',
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 300,
        },
      ],
      ...(terms === 0
        ? {}
        : {
            affinity: {
              nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
            },
          }),
    },
  };
}

function inputOf(pod: Pod, facts: PlacementInput['facts']): PlacementInput {
  return { pod, namespace: 'shop', namespaceLabels: {}, policy, facts };
}

/** Microseconds for one decision with its patch, sorted; a sample is a batch: the clock is coarser. */
function samples(input: PlacementInput, batches: number, batch: number): readonly number[] {
  let operations = 0;
  const found: number[] = [];
  for (let sample = 0; sample < batches; sample += 1) {
    const start = process.hrtime.bigint();
    for (let index = 0; index < batch; index += 1) operations += patchPod(input.pod, decide(input)).length;
    found.push(Number(process.hrtime.bigint() - start) / 1000 / batch);
  }
  if (operations === 0) throw new Error('nothing was patched, so nothing was measured');
  return found.sort((a, b) => a - b);
}

const facts = new Map<string, ImageFacts>();
for (let index = 0; index < 10_000; index += 1)
  facts.set(`public.example/shop/service-${index}:1.${index}`, known);
const fromMemory = (image: string): ImageFacts | undefined => facts.get(image);

const cases: readonly (readonly [name: string, input: PlacementInput, batches: number, batch: number])[] = [
  ['1 container', inputOf(podWith(1, 0), fromMemory), 2000, 20],
  ['3 containers', inputOf(podWith(3, 0), fromMemory), 2000, 20],
  ['3 containers, own terms', inputOf(podWith(3, 2), fromMemory), 2000, 20],
  ['3 containers, unknown', inputOf(podWith(3, 0), () => undefined), 2000, 20],
  ['30 containers', inputOf(podWith(30, 0), fromMemory), 500, 5],
  ['10,000 containers', inputOf(podWith(10_000, 0), fromMemory), 30, 1],
];

/** Takes a few seconds. */
export function benchDecision(): Section {
  const measured = cases.map(([name, input, batches, batch]) => {
    samples(input, Math.min(batches, 200), batch);
    return { name, sorted: samples(input, batches, batch) };
  });
  const rows = measured.map(({ name, sorted }) => [
    name,
    percentile(sorted, 0.5).toFixed(1),
    percentile(sorted, 0.99).toFixed(1),
  ]);
  const threeContainers = measured.find(({ name }) => name === '3 containers');
  return {
    script: 'bench:decision',
    title: 'Decision and patch alone',
    text: table(['pod', 'median µs', 'p99 µs'], rows),
    budgets: [
      {
        what: 'decision and patch, 3 containers, median',
        value: percentile(threeContainers?.sorted ?? [], 0.5),
        limit: budgetMicros,
        unit: 'µs',
        digits: 1,
      },
    ],
  };
}

if (import.meta.main) printSection(benchDecision());
