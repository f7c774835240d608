/** `archwright report --html --prices`: the sources of prices, and their sums. */
import t from 'tap';
import { asCsv, asTable, documentOf } from '../../../cmd/report/contents.ts';
import { offerOfNode, offersOfFile, parsePrices } from '../../../cmd/report/prices/prices.ts';
import { moneyOf } from '../../../cmd/report/prices/savings.ts';
import { putPod, shop, startCluster } from './cluster.ts';
import { judgedPod, pageOf, reportWith } from './judged-cluster.ts';
import { run } from '../run.ts';
import { files } from '../world.ts';
import { like } from '../../support/like.ts';

const gib = 2 ** 30;

t.test('a file of prices is parsed, or refused', async (t) => {
  const text = [
    'currency = "EUR"',
    '[[node]]',
    'instance-type = "m7g.large"',
    'region = "eu-1"',
    'on-demand = 0.1',
    'spot = 0.04',
    'architecture = "arm64"',
    'vcpu = 2',
    'memory = "8Gi"',
    '[[node]]',
    'instance-type = "m7i.large"',
    'on-demand = 1',
  ].join('\n');
  t.strictSame(parsePrices(text, 'p'), {
    currency: 'EUR',
    hoursPerMonth: 730,
    entries: [
      {
        'instance-type': 'm7g.large',
        region: 'eu-1',
        'on-demand': 0.1,
        spot: 0.04,
        architecture: 'arm64',
        vcpu: 2,
        memory: 8 * gib,
      },
      { 'instance-type': 'm7i.large', 'on-demand': 1 },
    ],
  });
  const node = (...lines: readonly string[]): string =>
    ['[[node]]', 'instance-type = "a"', 'on-demand = 1', ...lines].join('\n');
  const mistaken = /unknown architecture arm46; did you mean/;
  const wrong: [string, RegExp][] = [
    ['=', /^p:1: /],
    ['prices = 1', /^p: prices is not a known field/],
    ['currency = "dollars"', /currency must be a code such as "USD"/],
    ['hours-per-month = 745', /hours-per-month must be a number up to 744/],
    ['node = 1', /write \[\[node\]\]/],
    ['[[node]]\nspot = 1', /^p:1: instance-type is missing/],
    ['[[node]]\ninstance-type = "a"', /^p:1: needs on-demand or spot/],
    [node('spot = -1'), /spot must be a price per hour/],
    [node('spot = inf'), /spot must be a price per hour/],
    [node('sport = 1'), /^p:1: sport is not a known field/],
    [node('vcpu = 2'), /^p:1: needs architecture, vcpu and memory together/],
    [node('architecture = "arm46"', 'vcpu = 2', 'memory = "1Gi"'), mistaken],
    [node('architecture = "arm64"', 'vcpu = 2'), /needs architecture, vcpu and memory together/],
    // A price for a vCPU would be infinite.
    [node('architecture = "arm64"', 'vcpu = 1e-300', 'memory = "1Gi"'), /vcpu must be a number from 0\.01/],
    [node('architecture = "arm64"', 'vcpu = 2', 'memory = "1n"'), /memory must be a quantity/],
    [`${node()}\n${node()}`, /^p: a has two prices/],
    [`${node('region = "r"')}\n${node('region = "r"')}`, /^p: a in r has two prices/],
  ];
  for (const [text, message] of wrong)
    t.throws(() => parsePrices(text, 'p'), { message, name: 'UsageError' }, text);
});

t.test('the price of a node comes from the file, else from the node itself', async (t) => {
  const list = parsePrices(
    '[[node]]\ninstance-type = "a"\non-demand = 1\n[[node]]\ninstance-type = "a"\nregion = "r"\non-demand = 0.9\n',
    'p',
  );
  const own = { 'arch.example/price-per-hour': '3' };
  const ofType = { 'node.kubernetes.io/instance-type': 'a', 'topology.kubernetes.io/region': 'r' };
  const other = { 'node.kubernetes.io/instance-type': 'b' };
  const rows: [labels: object, annotations: object, found: unknown[]][] = [
    [{}, own, [0.9, 'file', 'on-demand']],
    [{ 'topology.kubernetes.io/region': 'other' }, own, [1, 'file', 'on-demand']],
    [other, own, [3, 'node', 'on-demand']],
    [{ ...other, ...own }, {}, [3, 'node', 'on-demand']],
    [{ ...other, 'eks-node-viewer/instance-price': '5' }, {}, [5, 'node', 'on-demand']],
    [other, { 'arch.example/price-per-hour': '3 EUR' }, [undefined, undefined, undefined]],
    // The file has no price for spot.
    [{ 'karpenter.sh/capacity-type': 'spot' }, own, [3, 'node', 'spot']],
    [{ 'eks.amazonaws.com/capacityType': 'SPOT' }, own, [3, 'node', 'spot']],
    [{ 'cloud.google.com/gke-spot': 'true' }, own, [3, 'node', 'spot']],
    [{ 'kubernetes.azure.com/scalesetpriority': 'spot' }, own, [3, 'node', 'spot']],
  ];
  const status = { nodeInfo: { architecture: 'amd64' }, capacity: { cpu: '2', memory: '8Gi' } };
  for (const [labels, annotations, found] of rows) {
    const metadata = { labels: { ...ofType, ...labels }, annotations: { ...annotations } };
    const { price, source, capacityType } = offerOfNode({ metadata, status }, list) ?? {};
    t.strictSame([price, source, capacityType], found, JSON.stringify(labels));
  }
  t.strictSame(offersOfFile(list, new Set(['r'])), [], 'a type of unknown size');
});

t.test('the price of a region takes precedence over the price of all regions', async (t) => {
  const size = 'architecture = "arm64"\nvcpu = 2\nmemory = "8Gi"\n';
  const everywhere = '[[node]]\ninstance-type = "a"\non-demand = 1\nspot = 0.5\n';
  const inOne = '[[node]]\ninstance-type = "a"\nregion = "r"\non-demand = 2\n';
  for (const text of [everywhere + size + inOne, everywhere + inOne + size]) {
    const offers = offersOfFile(parsePrices(text, 'p'), new Set(['q', 'r']));
    const found = offers.map(({ region, capacityType, price }) => `${region} ${capacityType} ${price}`);
    t.strictSame(found, ['q on-demand 1', 'q spot 0.5', 'r on-demand 2'], text);
  }
});

/**
 * The golden cluster, 730 hours a month. The prices of a vCPU and of a GiB, each as if it had the whole price of
 * its node:
 *
 *   node  type        region  capacity   price            vCPU                     GiB
 *   a1    m7i.large   eu-1    on-demand  0.12 file        0.12 × 730 / 2 = 43.80   0.12 × 730 / 8  = 10.95
 *   a2    c7i.xlarge  eu-1    spot       0.08 annotation  0.08 × 730 / 4 = 14.60   0.08 × 730 / 8  =  7.30
 *   a3    old         eu-1    on-demand  0.20 annotation  0.20 × 730 / 4 = 36.50   0.20 × 730 / 16 =  9.125
 *   a5    cheap       eu-1    on-demand  0.08 label       as a2
 *   a6    m7i.large   eu-2    on-demand  0.12 file        as a1
 *   g1    m7g.large   eu-1    on-demand  0.10 file        0.10 × 730 / 2 = 36.50   0.10 × 730 / 8  =  9.125
 *   -     m7g.xlarge  both    on-demand  0.24 file        0.24 × 730 / 4 = 43.80   0.24 × 730 / 16 = 10.95
 *   -     m7g.xlarge  both    spot       0.05 file        0.05 × 730 / 4 =  9.125  0.05 × 730 / 16 =  2.28125
 *
 * What the pods that can run cost now, and on the cheapest and the dearest arm64 of their place:
 *
 *   pods      node  vCPU  GiB  now by vCPU  by GiB  cheapest by vCPU  by GiB   dearest by vCPU  by GiB
 *   web       a1    1     2    43.80        21.90   36.50             18.25    43.80            21.90
 *   api       a2    2     2    29.20        14.60   18.25              4.5625  18.25             4.5625
 *   cache     a3    1     4    36.50        36.50   36.50             36.50    43.80            43.80
 *   mail      a5    1     2    14.60        14.60   36.50             18.25    43.80            21.90
 *   far       a6    1     1    43.80        10.95   43.80             10.95    43.80            10.95
 *   sum                        167.90       98.55   171.55            88.5125  193.45           103.1125
 *
 *   saved by vCPU: 167.90 - 193.45 = -25.55 to 167.90 - 171.55 = -3.65
 *   saved by GiB: 98.55 - 103.1125 = -4.5625 to 98.55 - 88.5125 = 10.0375
 *
 * The pod db, pinned on a1 with 1 vCPU and 1 GiB, adds 43.80 and 10.95 now; 36.50 and 9.125, or 43.80 and 10.95
 * then:
 *
 *   sum                        211.70       109.50  208.05            97.6375  237.25           114.0625
 *
 *   saved: by vCPU -25.55 to 3.65; by GiB -4.5625 to 11.8625
 *
 * Not counted: there is on g1 already, waiting has no node, free is on a4, which has no price, and agent belongs to a
 * DaemonSet.
 */
t.test('the sums of the golden cluster, to the cent', async (t) => {
  const list = parsePrices(
    `node = [
  { instance-type = "m7i.large", on-demand = 0.12 },
  { instance-type = "m7g.large", region = "eu-1", on-demand = 0.10 },
  { instance-type = "m7g.xlarge", on-demand = 0.24, spot = 0.05, architecture = "arm64", vcpu = 4, memory = "16Gi" },
  { instance-type = "r8i.large", on-demand = 0.9, architecture = "amd64", vcpu = 2, memory = "16Gi" },
]`,
    'prices.toml',
  );
  // A price of 9 belongs to a source without precedence.
  const nodes: [string, string, string, string, string, object, annotation: string, label: string][] = [
    ['a1', 'amd64', 'm7i.large', '2', '8Gi', {}, '9', ''],
    ['a2', 'amd64', 'c7i.xlarge', '4', '8Gi', { 'karpenter.sh/capacity-type': 'spot' }, '0.08', ''],
    ['a3', 'amd64', 'old', '4', '16Gi', {}, '0.20', '9'],
    ['a4', 'amd64', 'free', '4', '16Gi', {}, '', ''],
    ['a5', 'amd64', 'cheap', '4', '8Gi', {}, '', '0.08'],
    ['a6', 'amd64', 'm7i.large', '2', '8Gi', { 'topology.kubernetes.io/region': 'eu-2' }, '', ''],
    ['g1', 'arm64', 'm7g.large', '2', '8Gi', {}, '', ''],
  ];
  const price = (value: string) => (value === '' ? {} : { 'arch.example/price-per-hour': value });
  const offers = nodes.map(([name, architecture, type, cpu, memory, more, annotation, label]) => {
    const place = { 'node.kubernetes.io/instance-type': type, 'topology.kubernetes.io/region': 'eu-1' };
    const metadata = { labels: { ...place, ...price(label), ...more }, annotations: price(annotation) };
    const status = { nodeInfo: { architecture }, capacity: { cpu, memory } };
    return [name, { offer: offerOfNode({ metadata, status }, list) }] as const;
  });
  const money = moneyOf(new Map(offers), list, 'arm64');
  const pods: [name: string, node: string | undefined, cpu: number, gib: number, more?: object][] = [
    ['web', 'a1', 1, 2],
    ['api', 'a2', 2, 2],
    ['cache', 'a3', 1, 4],
    ['mail', 'a5', 1, 2],
    ['far', 'a6', 1, 1],
    ['agent', 'a1', 0.5, 1, { kind: 'DaemonSet' }],
    ['db', 'a1', 1, 1, { blockers: [{ cause: 'selector' }] }],
    ['free', 'a4', 1, 1],
    ['there', 'g1', 1, 1, { on: 'arm64' }],
    ['waiting', undefined, 1, 1, { blockers: [{ cause: 'image', image: 'old:1' }], image: 'old:1' }],
  ];
  const judged = pods.map(([name, node, cpu, size, more]) =>
    judgedPod({ name, kind: 'Pod', ...(node && { node, on: 'amd64' }), cpu, memory: size * gib, ...more }),
  );
  const report = reportWith(judged, { money });
  t.match(
    asTable(report, 'workload'),
    /\nshop +Pod\/mail +1 +- +amd64 +1 +2Gi +-\$29\.20 to -\$3\.65 +yes +-\n/,
  );
  const csv = asCsv(report, 'workload');
  t.match(csv, /,memory,saving low USD,saving high USD,arm64,why\r\n/);
  t.match(csv, /\nshop,Pod,mail,1,,amd64,1,2147483648,-29\.2,-3\.65,yes,\r\n/);
  const page = pageOf(judged, { money });
  const text = page
    .replaceAll(/<style>.*<\/style>|<script.*<\/script>|<[^>]*>/gs, ' ')
    .replaceAll(/\s+/g, ' ');
  for (const part of [
    'As they are 5 $98.55 to $167.90 $88.51 to $193.45 -$25.55 to $10.04',
    'With the changes to make first 6 $109.50 to $211.70 $97.64 to $237.25 -$25.55 to $11.86',
    'Without any blocker 6 $109.50 to $211.70 $97.64 to $237.25 -$25.55 to $11.86',
    'After the changes, images without the architecture and unknown ones have it.',
    'Not counted: 1 pod of DaemonSets, which run on every node.',
    'Not counted: 1 pod already on the architecture.',
    'Not counted: 1 pod without a node.',
    'Not counted: 1 pod on nodes without a price.',
    'c7i.xlarge amd64 eu-1 spot 1 4 8Gi $0.08 $14.60 $7.30 annotation or label of the node',
    'm7g.large arm64 eu-1 on-demand 1 2 8Gi $0.10 $36.50 $9.13 file of prices',
    'm7g.xlarge arm64 eu-1 spot 0 4 16Gi $0.05 $9.13 $2.28 file of prices',
    'm7g.xlarge arm64 eu-2 on-demand 0 4 16Gi $0.24 $43.80 $10.95 file of prices',
    'm7i.large amd64 eu-1 on-demand 1 2 8Gi $0.12 $43.80 $10.95 file of prices',
    // db alone: 43.80 - 43.80 = 0 to 43.80 - 36.50.
    'Remove the node selector of shop/Pod/db 1 1 1 1Gi $0.00 to $7.30',
  ])
    t.ok(text.includes(part), part);
  t.notMatch(text, /r8i/, 'no node has it, and no pod would run on it');
  t.match(page, /"Pod\/mail",1,"","amd64",1,2147483648,\[-29\.2,-3\.65\],\["ready"\]/);
  const { savings, workloads } = documentOf(report) as Json;
  t.strictSame(Object.fromEntries(workloads.map(({ name, saved }) => [name, saved])), {
    // By vCPU 43.80 - 43.80 to 43.80 - 36.50, by GiB 21.90 - 21.90 to 21.90 - 18.25.
    web: [0, 7.3],
    // By vCPU 29.20 - 18.25, by GiB 14.60 - 4.5625.
    api: [10.04, 10.95],
    cache: [-7.3, 0],
    // More expensive: by vCPU 14.60 - 43.80 to 14.60 - 36.50, by GiB 14.60 - 21.90 to 14.60 - 18.25.
    mail: [-29.2, -3.65],
    // The only type in its region costs as much.
    far: [0, 0],
    db: [0, 7.3],
    free: undefined,
    agent: undefined,
    there: undefined,
    waiting: undefined,
  });
  like(t, savings, {
    currency: 'USD',
    hoursPerMonth: 730,
    ready: { saved: [-25.55, 10.04] },
    all: { saved: [-25.55, 11.86] },
  });
});

interface Json {
  readonly savings?: { readonly ready: object; readonly all: object };
  readonly workloads: readonly { readonly name: string; readonly saved?: readonly number[] }[];
}

t.test('prices of a file and of nodes lead to savings; without them, there is no money', async (t) => {
  const open = await shop(t);
  const { store, report } = await startCluster(t);
  putPod(store, 'shop/web', [`${open.host}/both:1`]);
  const without = await report('--html', '-');
  t.notMatch(
    without.out.replace(/<script>.*<\/script>|<style>.*<\/style>/gs, ''),
    /\$|[Ss]aving|price|currency/,
  );
  t.notMatch((await report()).out, 'SAVING');
  const priced = (name: string, architecture: string, own: string, type: string) =>
    store.put(`/api/v1/nodes/${name}`, {
      metadata: {
        labels: { 'node.kubernetes.io/instance-type': type },
        annotations: { 'arch.example/price-per-hour': own },
      },
      status: { nodeInfo: { architecture }, capacity: { cpu: '4', memory: '8Gi' } },
    });
  priced('a1', 'amd64', '0.8', '');
  priced('g1', 'arm64', '0.8', 'm7g');
  const { prices } = files(t, {
    prices: 'hours-per-month = 100\n[[node]]\ninstance-type = "m7g"\non-demand = 0.4\n',
  });
  const { out } = await report('-o', 'json', '--prices', prices);
  // Half a vCPU of 4, or 1 GiB of 8, at half the price.
  like(t, (JSON.parse(out) as Json).savings, { ready: { now: [10, 10], moved: [5, 5], saved: [5, 5] } });
});

t.test('invalid prices are an error before any request', async (t) => {
  const { prices } = files(t, { prices: 'currency = 1' });
  const invalid = await run(['report', '--html', '-', '--prices', prices]);
  like(t, invalid, { code: 2, err: /prices: currency must be a code/ });
});
