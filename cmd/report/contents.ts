/** What a report says. Terminal, CSV, JSON, the page and the objects of `--publish` show it. */
import type { NewerTags } from './newer-tags.ts';
import type { Money } from './prices/money.ts';
import type { PriceList } from './prices/price-file.ts';
import type { Savings } from './prices/savings.ts';
import {
  imageRows,
  totals,
  workloadRows,
  type ImageRow,
  type JudgedPod,
  type Total,
  type WorkloadRow,
} from './rows.ts';
import type { Verdict } from './verdict.ts';

interface Findings {
  readonly pods: readonly JudgedPod[];
  readonly architecture: string;
  /** Namespaces that the report is limited to; empty: all. */
  readonly namespaces: readonly string[];
  /** Who looked up the images, and with which credentials: `from this machine, with …`. */
  readonly lookups: string;
  readonly made: Date;
  /** Absent without prices. */
  readonly money?: Money | undefined;
  /** Absent: they were not looked up. */
  readonly newerTags?: NewerTags | undefined;
}

export interface Report extends Findings {
  readonly totals: Readonly<Record<Verdict | 'all', Total>>;
  readonly workloads: readonly WorkloadRow[];
  readonly images: readonly ImageRow[];
  /** Savings per month, of pods without a blocker and of all; absent without prices. */
  readonly savings?: Pick<PriceList, 'currency' | 'hoursPerMonth'> & {
    readonly ready: Savings | undefined;
    readonly all: Savings | undefined;
  };
}

export function reportOf(findings: Findings): Report {
  const { pods, architecture, money, newerTags } = findings;
  return {
    ...findings,
    totals: totals(pods, architecture),
    workloads: workloadRows(pods, (some) => money?.savings.of(some)?.saved),
    images: imageRows(pods).map((row) => {
      const newerTag = newerTags?.byImage.get(row.image);
      return newerTag === undefined ? row : { ...row, newerTag };
    }),
    ...(money && { savings: savingsOf(pods, money) }),
  };
}

function savingsOf(
  pods: readonly JudgedPod[],
  { list: { currency, hoursPerMonth }, savings }: Money,
): Report['savings'] & object {
  const ready = savings.of(pods.filter(({ blockers }) => blockers.length === 0));
  return { currency, hoursPerMonth, ready, all: savings.of(pods) };
}
