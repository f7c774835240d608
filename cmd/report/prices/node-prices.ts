/** The price of a node, by the file of prices, else by its own annotation or label. */
import { architectureOf } from '../../../src/nodes/classify.ts';
import { keys } from '../../../src/names/keys.ts';
import { parseQuantity } from '../../../src/names/quantity.ts';
import type { Node } from '../../../src/kube/api/objects.ts';
import type { CapacityType, NodeSize, PriceEntry, PriceList } from './price-file.ts';

export interface NodeKind extends NodeSize {
  readonly instanceType: string;
  readonly region: string;
  readonly capacityType: CapacityType;
}

/** A kind of node with its price for an hour. */
export interface Offer extends NodeKind {
  readonly price: number;
  readonly source: 'file' | 'node';
}

/** The label of eks-node-viewer, https://github.com/awslabs/eks-node-viewer. */
const viewerLabel = 'eks-node-viewer/instance-price';

/** @returns `undefined` if the node does not say its size or architecture */
function kindOfNode(node: Node): NodeKind | undefined {
  const labels = node.metadata?.labels ?? {};
  const { capacity } = (node.status ?? {}) as { readonly capacity?: Readonly<Record<string, unknown>> };
  const architecture = architectureOf(node);
  const vcpu = parseQuantity(capacity?.['cpu']);
  const memory = parseQuantity(capacity?.['memory']);
  if (architecture === undefined || !(vcpu && vcpu > 0) || !(memory && memory > 0)) return undefined;
  return {
    architecture,
    vcpu,
    memory,
    instanceType: labels['node.kubernetes.io/instance-type'] ?? '',
    region: labels['topology.kubernetes.io/region'] ?? '',
    capacityType: isSpot(labels) ? 'spot' : 'on-demand',
  };
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

export function offerOfNode(node: Node, list: PriceList): Offer | undefined {
  const kind = kindOfNode(node);
  if (kind === undefined) return undefined;
  const ofType = list.entries.filter(({ instanceType }) => instanceType === kind.instanceType);
  const inFile = entryIn(kind.region, ofType)?.prices[kind.capacityType];
  if (inFile !== undefined) return { ...kind, price: inFile, source: 'file' };
  const own = ownPrice(node);
  return own === undefined ? undefined : { ...kind, price: own, source: 'node' };
}

/** The entry of the region comes before the one of every region. */
function entryIn(region: string, ofType: readonly PriceEntry[]): PriceEntry | undefined {
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
  return [...Map.groupBy(entries, ({ instanceType }) => instanceType)].flatMap(([instanceType, ofType]) => {
    const places = new Set(ofType.flatMap(({ region }) => region ?? [...regions]));
    const ofAny = ofType.find(({ size }) => size !== undefined)?.size;
    return [...places].flatMap((region) => {
      const { prices = {}, size = ofAny } = entryIn(region, ofType) ?? {};
      return (['on-demand', 'spot'] as const).flatMap((capacityType) => {
        const price = prices[capacityType];
        return price === undefined || size === undefined
          ? []
          : [{ ...size, instanceType, region, capacityType, price, source: 'file' } as const];
      });
    });
  });
}
