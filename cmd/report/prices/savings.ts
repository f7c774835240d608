/**
 * What pods cost where they are, and would cost on an architecture, in a month. A node's price is for vCPU
 * and memory together; which part is for which is not known. So each amount is counted twice, with the whole
 * price for the vCPU and with the whole price for the memory, and every other division lies between. Of the
 * types that a pod could move to, the cheapest and the dearest count.
 */
import type { Requests } from '../pods.ts';
import type { JudgedPod } from '../rows.ts';
import type { Offer } from './node-prices.ts';

type Range = readonly [low: number, high: number];

export interface Savings {
  /** Per month. */
  readonly now: Range;
  readonly moved: Range;
  /** Negative: more expensive. */
  readonly saved: Range;
  readonly pods: number;
}

/** Why a pod is not in the sums. */
export const unpriced = {
  daemon: 'of DaemonSets, which run on every node',
  there: 'already on the architecture',
  node: 'without a node',
  now: 'on nodes without a price',
  target: 'in regions without a price for the architecture',
} as const;
type Unpriced = keyof typeof unpriced;

interface Market {
  readonly architecture: string;
  readonly hoursPerMonth: number;
  /** @param node its name */
  readonly offerOf: (node: string) => Offer | undefined;
  readonly targets: readonly Offer[];
}

interface Amount {
  readonly byCpu: number;
  readonly byMemory: number;
}

interface Costs {
  readonly now: Amount;
  readonly cheapest: Amount;
  readonly dearest: Amount;
}

const zero: Amount = { byCpu: 0, byMemory: 0 };

export type SavingsOf = ReturnType<typeof createSavings>;

export function createSavings(market: Market) {
  const rateOf = ({ price, vcpu, memory }: Offer): Amount => ({
    byCpu: (market.hoursPerMonth * price) / vcpu,
    byMemory: (market.hoursPerMonth * price) / memory,
  });
  const targets = new Map<string, { readonly cheapest: Amount; readonly dearest: Amount }>();
  for (const offer of market.targets) {
    const [place, rate] = [placeOf(offer), rateOf(offer)];
    const { cheapest, dearest } = targets.get(place) ?? { cheapest: rate, dearest: rate };
    targets.set(place, {
      cheapest: combined(cheapest, rate, Math.min),
      dearest: combined(dearest, rate, Math.max),
    });
  }
  const costsOf = (pod: JudgedPod): Costs | Unpriced => {
    if (pod.workload.kind === 'DaemonSet') return 'daemon';
    if (pod.on === market.architecture) return 'there';
    if (pod.pod.node === undefined) return 'node';
    const offer = market.offerOf(pod.pod.node);
    if (offer === undefined) return 'now';
    const rates = targets.get(placeOf(offer));
    if (rates === undefined) return 'target';
    const { requests } = pod.pod.made;
    return {
      now: costOf(requests, rateOf(offer)),
      cheapest: costOf(requests, rates.cheapest),
      dearest: costOf(requests, rates.dearest),
    };
  };
  return {
    of: (pods: readonly JudgedPod[]): Savings | undefined => {
      const found = pods.map(costsOf).filter((costs) => typeof costs === 'object');
      return found.length === 0 ? undefined : savingsOf(found);
    },
    unpriced: (pod: JudgedPod): Unpriced | undefined => {
      const costs = costsOf(pod);
      return typeof costs === 'string' ? costs : undefined;
    },
  };
}

/** Spot is compared with spot, in the same region. */
function placeOf({ region, capacityType }: Offer): string {
  return JSON.stringify([region, capacityType]);
}

function costOf({ cpu, memory }: Requests, rate: Amount): Amount {
  return { byCpu: cpu * rate.byCpu, byMemory: memory * rate.byMemory };
}

function savingsOf(all: readonly Costs[]): Savings {
  const total = (part: keyof Costs): Amount =>
    all.map((costs) => costs[part]).reduce((a, b) => combined(a, b, (x, y) => x + y), zero);
  const [now, cheapest, dearest] = [total('now'), total('cheapest'), total('dearest')];
  const [least, most] = [combined(now, dearest, minus), combined(now, cheapest, minus)];
  return {
    now: range(now, now),
    moved: range(cheapest, dearest),
    saved: range(least, most),
    pods: all.length,
  };
}

/** Rounds to the cent. */
function range(low: Amount, high: Amount): Range {
  const cents = (value: number): number => Math.round(value * 100) / 100 || 0;
  return [cents(Math.min(low.byCpu, low.byMemory)), cents(Math.max(high.byCpu, high.byMemory))];
}

function minus(a: number, b: number): number {
  return a - b;
}

function combined(a: Amount, b: Amount, combine: (x: number, y: number) => number): Amount {
  return { byCpu: combine(a.byCpu, b.byCpu), byMemory: combine(a.byMemory, b.byMemory) };
}
