/**
 * Prices of nodes: by the file of `--prices FILE`, in TOML, documented in `docs/use/report.md`, else by the
 * node's own annotation or label.
 */
import * as v from 'valibot';
import { readText } from '../../../src/files/read.ts';
import type { Node } from '../../../src/kube/api/objects.ts';
import { keys } from '../../../src/names/keys.ts';
import { parseQuantity } from '../../../src/names/quantity.ts';
import { architectureOf } from '../../../src/nodes/classify.ts';
import { UsageError } from '../../program/exit.ts';
import { architecture, readTomlFile } from '../../program/toml-file.ts';

const capacityTypes = ['on-demand', 'spot'] as const;

export interface PriceList {
  readonly currency: string;
  readonly hoursPerMonth: number;
  readonly entries: readonly v.InferOutput<typeof node>[];
}

/** The list if no file is given. A month has 365 × 24 / 12 hours. */
export const noPriceList: PriceList = { currency: 'USD', hoursPerMonth: 730, entries: [] };

/** No node has such a price or size, and sums still have exact cents. */
const maxNumber = 1e6;

function number(problem: string, { least = Number.MIN_VALUE, most = maxNumber } = {}) {
  return v.custom<number>((value) => typeof value === 'number' && value >= least && value <= most, problem);
}

const name = v.pipe(v.string(), v.nonEmpty(), v.maxLength(128));
const code = 'must be a code such as "USD"';
const quantity = 'must be a quantity such as "8Gi"';
const price = number('must be a price per hour, such as 0.12');

const node = v.pipe(
  v.strictObject({
    'instance-type': name,
    /** Default: every region. */
    region: v.exactOptional(name),
    /** The price per hour, like `spot`. */
    'on-demand': v.exactOptional(price),
    spot: v.exactOptional(price),
    architecture: v.exactOptional(architecture),
    // No node has less. Prices are divided by both, and a quotient must stay a number.
    vcpu: v.exactOptional(number('must be a number from 0.01', { least: 0.01 })),
    memory: v.exactOptional(
      v.pipe(
        v.string(),
        v.transform((text: string) => parseQuantity(text)),
        v.number(quantity),
        v.minValue(2 ** 20, quantity),
      ),
    ),
  }),
  v.check((entry) => 'on-demand' in entry || 'spot' in entry, 'needs on-demand or spot'),
  v.check(
    ({ architecture, vcpu, memory }) =>
      new Set([architecture, vcpu, memory].map((each) => each === undefined)).size === 1,
    'needs architecture, vcpu and memory together',
  ),
);

const form = v.strictObject({
  currency: v.exactOptional(v.pipe(v.string(code), v.regex(/^[A-Z]{3}$/, code)), noPriceList.currency),
  'hours-per-month': v.exactOptional(
    number('must be a number up to 744', { most: 744 }),
    noPriceList.hoursPerMonth,
  ),
  // A large cloud has about 1,000 instance types and 40 regions; a file lists those in use.
  node: v.exactOptional(
    v.pipe(v.array(node, 'must be a list of tables: write [[node]]'), v.maxLength(5000)),
    [],
  ),
});

/** 5,000 entries of the size of the example. */
const maxBytes = 1024 * 1024;

/** @param path `undefined`: no file @throws UsageError with file and line; FileError */
export async function readPrices(path: string | undefined): Promise<PriceList> {
  return path === undefined ? noPriceList : parsePrices(await readText(path, { maxBytes }), path);
}

/** @throws UsageError with file and line */
export function parsePrices(text: string, file: string): PriceList {
  const { currency, 'hours-per-month': hoursPerMonth, node } = readTomlFile(text, file, form).value;
  const seen = new Set<string>();
  for (const { 'instance-type': instanceType, region } of node) {
    const key = JSON.stringify([instanceType, region]);
    const where = region === undefined ? '' : ` in ${region}`;
    if (seen.has(key)) throw new UsageError(`${file}: ${instanceType}${where} has two prices`);
    seen.add(key);
  }
  return { currency, hoursPerMonth, entries: node };
}

/** A kind of node with its price for an hour. */
export interface Offer {
  readonly architecture: string;
  readonly vcpu: number;
  /** Bytes. */
  readonly memory: number;
  readonly instanceType: string;
  readonly region: string;
  readonly capacityType: (typeof capacityTypes)[number];
  readonly price: number;
  readonly source: 'file' | 'node';
}

/** The label of eks-node-viewer, https://github.com/awslabs/eks-node-viewer. */
const viewerLabel = 'eks-node-viewer/instance-price';

/** @returns `undefined` if the node does not say its size or architecture, or has no price */
export function offerOfNode(node: Node, list: PriceList): Offer | undefined {
  const labels = node.metadata?.labels ?? {};
  const { capacity } = (node.status ?? {}) as { readonly capacity?: Readonly<Record<string, unknown>> };
  const architecture = architectureOf(node);
  const vcpu = parseQuantity(capacity?.['cpu']);
  const memory = parseQuantity(capacity?.['memory']);
  if (architecture === undefined || !(vcpu && vcpu > 0) || !(memory && memory > 0)) return undefined;
  const kind = {
    architecture,
    vcpu,
    memory,
    instanceType: labels['node.kubernetes.io/instance-type'] ?? '',
    region: labels['topology.kubernetes.io/region'] ?? '',
    capacityType: isSpot(labels) ? 'spot' : 'on-demand',
  } as const;
  const ofType = list.entries.filter((entry) => entry['instance-type'] === kind.instanceType);
  const inFile = entryIn(kind.region, ofType)?.[kind.capacityType];
  if (inFile !== undefined) return { ...kind, price: inFile, source: 'file' };
  const own = ownPrice(node);
  return own === undefined ? undefined : { ...kind, price: own, source: 'node' };
}

const spotLabels: Readonly<Record<string, string>> = {
  'karpenter.sh/capacity-type': 'spot',
  'eks.amazonaws.com/capacityType': 'SPOT',
  'cloud.google.com/gke-spot': 'true',
  'cloud.google.com/gke-preemptible': 'true',
  'kubernetes.azure.com/scalesetpriority': 'spot',
};

function isSpot(labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(spotLabels).some(([key, value]) => labels[key] === value);
}

/** The entry of the region comes before the one of every region. */
function entryIn(region: string, ofType: PriceList['entries']) {
  return (
    ofType.find((entry) => entry.region === region) ?? ofType.find((entry) => entry.region === undefined)
  );
}

function ownPrice({ metadata }: Node): number | undefined {
  const { annotations = {}, labels = {} } = metadata ?? {};
  const text = annotations[keys.pricePerHour] ?? labels[keys.pricePerHour] ?? labels[viewerLabel];
  return text !== undefined && /^\d{1,6}(?:\.\d{1,12})?$/.test(text) ? Number(text) : undefined;
}

/** Types of the file with their sizes, as they could be bought: once for each region that the cluster has. */
export function offersOfFile({ entries }: PriceList, regions: ReadonlySet<string>): readonly Offer[] {
  return [...Map.groupBy(entries, (entry) => entry['instance-type'])].flatMap(([instanceType, ofType]) => {
    const places = new Set(ofType.flatMap(({ region }) => region ?? [...regions]));
    const sized = ofType.find(({ vcpu }) => vcpu !== undefined);
    return [...places].flatMap((region) => {
      const entry = entryIn(region, ofType);
      const { architecture, vcpu, memory } = entry?.vcpu === undefined ? (sized ?? {}) : entry;
      if (architecture === undefined || vcpu === undefined || memory === undefined) return [];
      const kind = { instanceType, region, architecture, vcpu, memory, source: 'file' } as const;
      return capacityTypes.flatMap((capacityType) => {
        const price = entry?.[capacityType];
        return price === undefined ? [] : { ...kind, capacityType, price };
      });
    });
  });
}
