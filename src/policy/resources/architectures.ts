/**
 * Architectures in custom resources that no node can have. Preferences and fallbacks among them are ignored, because pods would
 * stay pending. The allowed `architectures` stay unchanged, because an empty list would allow every architecture. Both are
 * reported in the status.
 */
import type { ArchitecturePreferences } from './placement.ts';

/**
 * The preferences without unschedulable architectures.
 * @param schedulable architectures that nodes can have; empty: any
 * @returns the same object if nothing is removed
 */
export function withinSchedulable<T extends ArchitecturePreferences>(
  preferences: T,
  schedulable: readonly string[],
): T {
  const out = unschedulableArchitectures(preferences, schedulable);
  if (out.length === 0) return preferences;
  const { fallbackArchitecture: fallback, weights = {} } = preferences;
  const kept = Object.entries(weights).filter(([name]) => !out.includes(name));
  return {
    ...preferences,
    fallbackArchitecture: fallback === undefined || out.includes(fallback) ? undefined : fallback,
    weights: kept.length === 0 ? undefined : Object.fromEntries(kept),
  };
}

/** The named architectures that no node can have, sorted, unique. */
export function unschedulableArchitectures(
  { weights = {}, fallbackArchitecture, architectures = [] }: ArchitecturePreferences,
  schedulable: readonly string[],
): readonly string[] {
  if (schedulable.length === 0) return [];
  const named = new Set([...Object.keys(weights), ...architectures]);
  if (fallbackArchitecture !== undefined) named.add(fallbackArchitecture);
  return [...named].filter((name) => !schedulable.includes(name)).toSorted();
}
