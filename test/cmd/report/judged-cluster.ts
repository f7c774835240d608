/** Judged pods for tests of the page of `archwright report`. */
import { stateVerdicts, type Blocker, type JudgedPod } from '../../../cmd/report/verdict.ts';
import { reportOf, type Report } from '../../../cmd/report/contents.ts';
import { reportPage } from '../../../cmd/report/page/page.ts';
import { offerOfNode, parsePrices } from '../../../cmd/report/prices/prices.ts';
import { moneyOf } from '../../../cmd/report/prices/savings.ts';

export interface JudgedOptions extends Partial<Pick<JudgedPod, 'on' | 'blockers' | 'why'>> {
  readonly namespace?: string;
  readonly kind?: string;
  readonly name: string;
  readonly image?: string;
  readonly cpu?: number;
  /** In bytes. */
  readonly memory?: number;
  readonly node?: string;
}

export function judgedPod(options: JudgedOptions): JudgedPod {
  const { namespace = 'shop', kind = 'Deployment', name, image = `registry.example.com/${name}:1` } = options;
  const { cpu = 1, memory = 2 ** 30, on, node, blockers = [], why = '' } = options;
  const requests = { cpu, memory };
  const made = {
    os: 'linux',
    pod: { spec: { containers: [] } },
    requests,
    requestsByImage: new Map([[image, requests]]),
    wanted: { uses: [], namespace, pullSecrets: { names: [] }, serviceAccount: undefined },
  };
  const [main] = blockers;
  const { cause: state = 'ready' } = blockers.find((each) => each.image === image) ?? {};
  return {
    pod: { namespace, owner: undefined, name, node, made },
    workload: { apiVersion: 'apps/v1', kind, name },
    verdict: stateVerdicts[main?.cause ?? 'ready'],
    why,
    images: [
      {
        image,
        state,
        verdict: stateVerdicts[state],
        ...(state !== 'unknown' && { architectures: state === 'ready' ? ['amd64', 'arm64'] : ['amd64'] }),
        why,
      },
    ],
    on,
    blockers,
  };
}

/** Every n-th workload has this blocker. The first match counts. */
const blocked: readonly (readonly [every: number, Blocker['cause']])[] = [
  [11, 'image'],
  [97, 'broken'],
  [61, 'unknown'],
  [29, 'selector'],
  [53, 'affinity'],
];

/** A deterministic cluster in which every state occurs. */
export function largeCluster(workloads: number): readonly JudgedPod[] {
  return Array.from({ length: workloads }, (_, index) => {
    const image = `registry.example.com/team-${index % 40}/service-${index % 1200}:1.${index % 7}`;
    const [, cause] = blocked.find(([every]) => index % every === 0) ?? [];
    const isPinned = cause === 'selector' || cause === 'affinity';
    const blockers = cause === undefined ? [] : [isPinned ? { cause } : { cause, image }];
    const pods = 1 + (index % 3);
    return Array.from({ length: pods }, () =>
      judgedPod({
        namespace: `team-${index % 40}`,
        name: `service-${index}`,
        image,
        cpu: 0.1 + (index % 16) / 4,
        memory: (64 + (index % 32) * 128) * 2 ** 20,
        on: index % 9 === 0 ? 'arm64' : 'amd64',
        blockers,
        why: blockers.length === 0 ? '' : `${image} has amd64`,
      }),
    );
  }).flat();
}

export function reportWith(pods: readonly JudgedPod[], more: Partial<Report> = {}): Report {
  const made = new Date('2026-11-22T10:00:00Z');
  const lookups = 'from <this> machine';
  return reportOf({ pods, architecture: 'arm64', lookups, namespaces: [], made, ...more });
}

export const pageOf = (...args: Parameters<typeof reportWith>): string => reportPage(reportWith(...args));

/** Of the node `a1`, and of a type for arm64 with its size. */
export function sampleMoney() {
  const list = parsePrices(
    '[[node]]\ninstance-type = "m7i.xlarge"\non-demand = 0.24\n' +
      '[[node]]\ninstance-type = "m7g.xlarge"\non-demand = 0.195\narchitecture = "arm64"\nvcpu = 4\nmemory = "16Gi"\n',
    'prices.toml',
  );
  const labels = {
    'node.kubernetes.io/instance-type': 'm7i.xlarge',
    'topology.kubernetes.io/region': 'eu-central-1',
  };
  const status = { nodeInfo: { architecture: 'amd64' }, capacity: { cpu: '4', memory: '16Gi' } };
  const offer = offerOfNode({ metadata: { name: 'a1', labels }, status }, list);
  return moneyOf(new Map([['a1', { offer }]]), list, 'arm64');
}
