/** The prices of a cluster's nodes, and of the types that its pods could move to. */
import { byName } from '../../../src/names/values.ts';
import type { ReportedNode } from '../pods.ts';
import { offersOfFile, type NodeKind, type Offer } from './node-prices.ts';
import type { PriceList } from './price-file.ts';
import { createSavings, type SavingsOf } from './savings.ts';

export interface PricedKind {
  readonly offer: Offer;
  /** How many nodes are of this kind. */
  readonly nodes: number;
}

export interface Money {
  readonly list: PriceList;
  /** Kinds of the present nodes, and those of the architecture that the price file names with a size. */
  readonly kinds: readonly PricedKind[];
  readonly savings: SavingsOf;
}

/** @param nodes by name @returns `undefined` without a price: then there is no money in the report */
export function moneyOf(
  nodes: ReadonlyMap<string, Pick<ReportedNode, 'offer'>>,
  list: PriceList,
  architecture: string,
): Money | undefined {
  const offers = [...nodes.values()].flatMap(({ offer }) => offer ?? []);
  if (offers.length === 0) return undefined;
  const kinds = new Map<string, PricedKind>();
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
  const sorted = [...kinds].toSorted(([a], [b]) => byName(a, b)).map(([, kind]) => kind);
  const savings = createSavings({
    architecture,
    hoursPerMonth: list.hoursPerMonth,
    offerOf: (node) => nodes.get(node)?.offer,
    targets: sorted.map(({ offer }) => offer).filter((offer) => offer.architecture === architecture),
  });
  return { list, kinds: sorted, savings };
}

function identityOf({ architecture, instanceType, region, capacityType }: NodeKind): string {
  return JSON.stringify([architecture, instanceType, region, capacityType]);
}
