/**
 * What pods cost where they are, and would cost on an architecture, in a month. A node's price is for vCPU
 * and memory together; which part is for which is not known. So each amount is counted twice, with the whole
 * price for the vCPU and with the whole price for the memory, and every other division lies between. Of the
 * types that a pod could move to, the cheapest and the dearest count.
 */
import { byName } from '../../../src/names/values.ts';
import type { JudgedPod } from '../verdict.ts';
import { offersOfFile, type Offer, type PriceList } from './prices.ts';

export type Range = readonly [low: number, high: number];

/** Why a pod is not in the sums. */
export const unpriced = {
  daemon: 'of DaemonSets, which run on every node',
  there: 'already on the architecture',
  node: 'without a node',
  now: 'on nodes without a price',
  target: 'in regions without a price for the architecture',
} as const;
type Unpriced = keyof typeof unpriced;

/** What a price is divided by, and what a pod requests of it. */
const divisions = [
  ['vcpu', 'cpu'],
  ['memory', 'memory'],
] as const;

export type Money = NonNullable<ReturnType<typeof moneyOf>>;

/** @param nodes by name @returns `undefined` without a price: then there is no money in the report */
export function moneyOf(
  nodes: ReadonlyMap<string, { readonly offer: Offer | undefined }>,
  list: PriceList,
  architecture: string,
) {
  const offers = [...nodes.values()].flatMap(({ offer }) => offer ?? []);
  if (offers.length === 0) return undefined;
  const kinds = kindsOf(offers, list, architecture);
  const targets = Map.groupBy(
    kinds.map(({ offer }) => offer).filter((offer) => offer.architecture === architecture),
    placeOf,
  );
  /** Prices of each place, for a vCPU and for a byte. */
  const rates = new Map(
    [...targets].map(([place, all]) => [place, divisions.map(([part]) => rangeOf(all.map(rateOf(part))))]),
  );

  function rateOf(part: 'vcpu' | 'memory'): (offer: Offer) => number {
    return (offer) => (list.hoursPerMonth * offer.price) / offer[part];
  }

  /** @returns by division */
  function costsOf({ pod, workload, on }: JudgedPod) {
    if (workload.kind === 'DaemonSet') return 'daemon';
    if (on === architecture) return 'there';
    if (pod.node === undefined) return 'node';
    const offer = nodes.get(pod.node)?.offer;
    if (offer === undefined) return 'now';
    const ranges = rates.get(placeOf(offer));
    if (ranges === undefined) return 'target';
    const { requests } = pod.made;
    return divisions.map(([part, requested], index) => {
      const [least = 0, most = 0] = ranges[index] ?? [];
      const amount = requests[requested];
      return { now: amount * rateOf(part)(offer), least: amount * least, most: amount * most };
    });
  }

  return {
    list,
    /** Kinds of the present nodes, and those of the architecture that the price file names with a size. */
    kinds,
    /** @returns per month; negative savings: more expensive */
    savingsOf: (pods: readonly JudgedPod[]) => {
      const found = pods.map(costsOf).filter((costs) => typeof costs === 'object');
      if (found.length === 0) return undefined;
      const sums = divisions.map((_, index) => {
        const total = (part: 'now' | 'least' | 'most'): number =>
          found.reduce((sum, costs) => sum + (costs[index]?.[part] ?? 0), 0);
        return { now: total('now'), least: total('least'), most: total('most') };
      });
      return {
        now: centsOf(sums.map(({ now }) => now)),
        moved: centsOf(sums.flatMap(({ least, most }) => [least, most])),
        saved: centsOf(sums.flatMap(({ now, least, most }) => [now - least, now - most])),
        pods: found.length,
      };
    },
    unpriced: (pod: JudgedPod): Unpriced | undefined => {
      const costs = costsOf(pod);
      return typeof costs === 'string' ? costs : undefined;
    },
  };
}

/** How many nodes are of each kind. */
function kindsOf(offers: readonly Offer[], list: PriceList, architecture: string) {
  const kinds = new Map<string, { readonly offer: Offer; readonly nodes: number }>();
  const present = new Set(offers.map(identityOf));
  for (const offer of offers) {
    const key = `${identityOf(offer)} ${offer.price} ${offer.vcpu} ${offer.memory}`;
    kinds.set(key, { offer, nodes: (kinds.get(key)?.nodes ?? 0) + 1 });
  }
  for (const offer of offersOfFile(list, new Set(offers.map(({ region }) => region)))) {
    const identity = identityOf(offer);
    if (offer.architecture === architecture && !present.has(identity))
      kinds.set(identity, { offer, nodes: 0 });
  }
  return [...kinds].toSorted(([a], [b]) => byName(a, b)).map(([, kind]) => kind);
}

function identityOf({ architecture, instanceType, region, capacityType }: Offer): string {
  return JSON.stringify([architecture, instanceType, region, capacityType]);
}

/** Spot is compared with spot, in the same region. */
function placeOf({ region, capacityType }: Offer): string {
  return JSON.stringify([region, capacityType]);
}

function rangeOf(values: readonly number[]): Range {
  return [Math.min(...values), Math.max(...values)];
}

/** The range, rounded to the cent. */
function centsOf(values: readonly number[]): Range {
  const [low, high] = rangeOf(values);
  const cents = (value: number): number => Math.round(value * 100) / 100 || 0;
  return [cents(low), cents(high)];
}
