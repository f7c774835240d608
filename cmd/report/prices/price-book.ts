/** The prices of a cluster's nodes, and of the types that its pods could move to. */
import type { Node } from '../../../src/kube/api/objects.ts';
import type { NodeOverlay } from './node-overlays.ts';
import { kindOfNode, offerOfNode, offersOfFile, type NodeKind, type Offer } from './node-prices.ts';
import type { PriceList } from './price-file.ts';
import type { Market } from './savings.ts';

/** A kind of node with a price, and how many of it there are. */
export interface PricedKind {
  readonly offer: Offer;
  readonly nodes: number;
}

export class PriceBook {
  readonly list: PriceList;
  readonly #overlays: readonly NodeOverlay[];
  readonly #offers = new Map<string, Offer>();
  readonly #regions = new Set<string>();

  constructor(list: PriceList, overlays: readonly NodeOverlay[]) {
    this.list = list;
    this.#overlays = overlays;
  }

  add(node: Node): void {
    const kind = kindOfNode(node);
    if (kind !== undefined) this.#regions.add(kind.region);
    const offer = offerOfNode(node, this.list, this.#overlays);
    if (offer !== undefined) this.#offers.set(node.metadata?.name ?? '', offer);
  }

  /** @returns `undefined` without any price of the cluster's nodes: then there is no money in the report */
  market(architecture: string): Market | undefined {
    if (this.#offers.size === 0) return undefined;
    return {
      architecture,
      hoursPerMonth: this.list.hoursPerMonth,
      offerOf: (node) => this.#offers.get(node),
      targets: this.kinds(architecture)
        .map(({ offer }) => offer)
        .filter((offer) => offer.architecture === architecture),
    };
  }

  /** Of the nodes, and those of the architecture that the file names with their sizes. */
  kinds(architecture: string): readonly PricedKind[] {
    const kinds = new Map<string, PricedKind>();
    for (const offer of this.#offers.values()) {
      const key = JSON.stringify([identity(offer), offer.price, offer.vcpu, offer.memory]);
      kinds.set(key, { offer, nodes: (kinds.get(key)?.nodes ?? 0) + 1 });
    }
    const present = new Set([...kinds.values()].map(({ offer }) => identity(offer)));
    const more = offersOfFile(this.list, this.#regions).filter(
      (offer) => offer.architecture === architecture && !present.has(identity(offer)),
    );
    return [...kinds.values(), ...more.map((offer) => ({ offer, nodes: 0 }))].toSorted((a, b) =>
      identity(a.offer) < identity(b.offer) ? -1 : 1,
    );
  }
}

function identity({ architecture, instanceType, region, capacityType }: NodeKind): string {
  return JSON.stringify([architecture, instanceType, region, capacityType]);
}
