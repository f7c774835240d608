/**
 * The architectures that all images of a pod share. Unknown images do not count; the known ones are an upper
 * bound.
 */
import { maxArchitectures } from '../../../names/architecture.ts';
import { maxImageBytes, printable } from '../../../names/printable.ts';
import { groupsOf, type NodeClasses, type NodesOfClass } from '../../../nodes/node-classes.ts';
import type { Policy } from '../../../policy/effective/policy.ts';
import type { ImageVerdict } from '../../decision.ts';

/** How all images of a pod together fit the classes of nodes. */
export interface CommonFit {
  /** Sorted; empty if they share none; `undefined` if no image constrains anything. */
  readonly architectures: readonly string[] | undefined;
  /** Classes of these architectures that refuse an image. */
  readonly refusing: ReadonlyMap<NodesOfClass, string>;
}

/** @param schedulable architectures that nodes can have; empty: no bound */
export function commonArchitectures(
  images: readonly ImageVerdict[],
  schedulable: readonly string[],
): readonly string[] | undefined {
  let common: readonly string[] | undefined;
  for (const { architectures } of images) {
    if (architectures === undefined) continue;
    common = common === undefined ? architectures : intersection(common, architectures);
  }
  if (common === undefined) return undefined;
  const possible = schedulable.length === 0 ? common : intersection(common, schedulable);
  return possible.length > maxArchitectures ? possible.slice(0, maxArchitectures) : possible;
}

/** Removes an architecture if each of its classes refuses some image. */
export function withinClasses(
  common: readonly string[] | undefined,
  images: readonly ImageVerdict[],
  classes: NodeClasses | undefined,
  os: string,
): CommonFit {
  const refusing = new Map<NodesOfClass, string>();
  for (const { image, fit } of images)
    for (const [group, why] of fit?.refusing ?? [])
      if (!refusing.has(group)) refusing.set(group, `${printable(image, maxImageBytes)}: ${why}`);
  if (refusing.size === 0 || common === undefined) return { architectures: common, refusing };
  const possible = common.filter((name) => {
    const groups = groupsOf(classes, name, os);
    return groups.length === 0 || groups.some((group) => !refusing.has(group));
  });
  return { architectures: possible, refusing };
}

/** @param common `undefined`: the images constrain nothing, or are unknown. The allowed ones apply even then */
export function withinAllowed(
  common: readonly string[] | undefined,
  { allowed, schedulableArchitectures: schedulable }: Policy,
): readonly string[] | undefined {
  if (allowed === undefined) return common;
  const { architectures } = allowed;
  const possible = schedulable.length === 0 ? architectures : intersection(architectures, schedulable);
  return common === undefined ? possible : intersection(common, possible);
}

/** The architectures on which every image is certain to run; all if no node has one of these. */
export function certainOf(
  images: readonly ImageVerdict[],
  required: readonly string[] | undefined,
  classes: NodeClasses | undefined,
  os: string,
): readonly string[] | undefined {
  if (images.every(({ fit }) => !fit?.dependsOn.size)) return required;
  const certain = required?.filter((name) => images.every(({ fit }) => !fit?.dependsOn.has(name)));
  const hasNodes = (name: string): boolean => classes === undefined || groupsOf(classes, name, os).length > 0;
  return certain?.some(hasNodes) === true ? certain : required;
}

/** The names in both lists, in the order of the first. */
export function intersection(a: readonly string[], b: readonly string[]): readonly string[] {
  if (a === b) return a;
  const wanted = new Set(b);
  return a.filter((name) => wanted.has(name));
}
