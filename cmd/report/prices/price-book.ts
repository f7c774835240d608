/** The prices of a cluster's nodes, and of the types that its pods could move to. */
import type { Node } from '../../../src/kube/api/objects.ts';
import { byName } from '../../../src/names/values.ts';
import { kindOfNode, offerOfNode, offersOfFile, type NodeKind, type Offer } from './node-prices.ts';
import type { PriceList } from './price-file.ts';
import { createSavings, type SavingsOf } from './savings.ts';

export interface PricedKind {
  readonly offer: Offer;
  readonly nodes: number;
}

export interface Money {
  readonly list: PriceList;
  readonly kinds: readonly PricedKind[];
  readonly savings: SavingsOf;
}

export class PriceBook {
  readonly #list: PriceList;
  readonly #offers = new Map<string, Offer>();
  readonly #regions = new Set<string>();

  constructor(list: PriceList) {
    this.#list = list;
  }

  add(node: Node): void {
    const kind = kindOfNode(node);
    if (kind !== undefined) this.#regions.add(kind.region);
    const offer = offerOfNode(node, this.#list);
    if (offer !== undefined) this.#offers.set(node.metadata?.name ?? '', offer);
  }

  /** @returns `undefined` without any price of the cluster's nodes: then there is no money in the report */
  money(architecture: string): Money | undefined {
    if (this.#offers.size === 0) return undefined;
    const list = this.#list;
    const kinds = this.#kinds(architecture);
    const targets = kinds.flatMap(({ offer }) => (offer.architecture === architecture ? [offer] : []));
    const offerOf = (node: string): Offer | undefined => this.#offers.get(node);
    const market = { architecture, hoursPerMonth: list.hoursPerMonth, offerOf, targets };
    return { list, kinds, savings: createSavings(market) };
  }

  /** Kinds of the present nodes, and those of the architecture that the price file names with their sizes. */
  #kinds(architecture: string): readonly PricedKind[] {
    const kinds = new Map<string, PricedKind>();
    const present = new Set<string>();
    for (const offer of this.#offers.values()) {
      const identity = identityOf(offer);
      const key = `${identity} ${offer.price} ${offer.vcpu} ${offer.memory}`;
      kinds.set(key, { offer, nodes: (kinds.get(key)?.nodes ?? 0) + 1 });
      present.add(identity);
    }
    for (const offer of offersOfFile(this.#list, this.#regions)) {
      const identity = identityOf(offer);
      if (offer.architecture === architecture && !present.has(identity))
        kinds.set(identity, { offer, nodes: 0 });
    }
    return [...kinds].toSorted(([a], [b]) => byName(a, b)).map(([, kind]) => kind);
  }
}

function identityOf({ architecture, instanceType, region, capacityType }: NodeKind): string {
  return JSON.stringify([architecture, instanceType, region, capacityType]);
}
