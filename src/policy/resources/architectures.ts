/**
 * A wish for an architecture that no node can have would keep pods pending for ever: it is left out, and said. What pods may run on is
 * said too and stays as it is: left out, it would allow everything; the decision knows the schedulable ones.
 */
import type { ArchitectureWishes } from './placement.ts';

/**
 * The wishes that can be met.
 * @param schedulable architectures that nodes can have; empty: any
 * @returns the same object where nothing is left out
 */
export function withinSchedulable<T extends ArchitectureWishes>(
  wishes: T,
  schedulable: readonly string[],
): T {
  const out = architecturesLeftOut(wishes, schedulable);
  if (out.length === 0) return wishes;
  const { fallbackArchitecture: fallback, weights = {} } = wishes;
  const kept = Object.entries(weights).filter(([name]) => !out.includes(name));
  return {
    ...wishes,
    fallbackArchitecture: fallback === undefined || out.includes(fallback) ? undefined : fallback,
    weights: kept.length === 0 ? undefined : Object.fromEntries(kept),
  };
}

/** The architectures that are wished for in vain, sorted, each once. */
export function architecturesLeftOut(
  { weights = {}, fallbackArchitecture, architectures = [] }: ArchitectureWishes,
  schedulable: readonly string[],
): readonly string[] {
  if (schedulable.length === 0) return [];
  const named = new Set([...Object.keys(weights), ...architectures]);
  if (fallbackArchitecture !== undefined) named.add(fallbackArchitecture);
  return [...named].filter((name) => !schedulable.includes(name)).toSorted();
}
