/** What a report says. Terminal, CSV, JSON, the page and the objects of `--publish` show it. */
import type { NewerTags } from './newer-tags.ts';
import type { Money } from './prices/savings.ts';
import { imageRows, totals, workloadRows, type JudgedPod } from './rows.ts';

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

export type Report = ReturnType<typeof reportOf>;

export function reportOf(findings: Findings) {
  const { pods, architecture, money, newerTags } = findings;
  return {
    ...findings,
    totals: totals(pods, architecture),
    workloads: workloadRows(pods, money),
    images: imageRows(pods).map((row) => ({ ...row, newerTag: newerTags?.byImage.get(row.image) })),
    /** Per month, of pods without a blocker and of all; absent without prices. */
    savings: money && {
      currency: money.list.currency,
      hoursPerMonth: money.list.hoursPerMonth,
      ready: money.savingsOf(pods.filter(({ blockers }) => blockers.length === 0)),
      all: money.savingsOf(pods),
    },
  };
}
