/**
 * Required architectures: the intersection of those that each image has for the pod's operating system,
 * within the schedulable ones. Unknown images do not count; the known ones are an upper bound.
 */
import type { ImageFacts } from '../../images/facts/facts.ts';
import { maxArchitectures } from '../../names/architecture.ts';
import { byName } from '../../names/values.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import type { NodeClasses } from '../../nodes/node-classes.ts';
import type { ImageVerdict } from '../decision.ts';
import type { ImageUse } from '../pod/images.ts';
import { fitOf } from './fit.ts';
import { draft, type Draft } from './rules.ts';

/**
 * @param nodes classes of the cluster's nodes. Default: not known, so what any known runtime could run counts
 * @param schedulable architectures that nodes can have, although none may have one now
 */
export function verdictsOf(
  uses: readonly ImageUse[],
  os: string,
  factsOf: (image: string) => ImageFacts | undefined,
  nodes?: NodeClasses,
  schedulable: readonly string[] = [],
): readonly ImageVerdict[] {
  return uses.map(({ image, usedBy, pullPolicy, volumeOnly }) => {
    // If never pulled, the image must already be on the node. No registry is authoritative for it.
    if (pullPolicy === 'Never') return { image, usedBy, architectures: undefined, facts: undefined };
    const facts = factsOf(image);
    if (facts === undefined) return { image, usedBy, architectures: undefined, unknown: 'unknown', facts };
    const code = facts.error?.code;
    if (code === undefined) {
      const { architectures, widened, fit } = fitOf(facts, os, nodes);
      const more = widened.filter((name) => schedulable.includes(name));
      const all = more.length === 0 ? architectures : [...(architectures ?? []), ...more].sort(byName);
      return { image, usedBy, architectures: all, ...(fit && { fit }), facts };
    }
    const constrainsNothing = code === 'invalid-reference' || (code === 'not-an-image' && volumeOnly);
    return {
      image,
      usedBy,
      architectures: undefined,
      ...(constrainsNothing ? {} : { unknown: code }),
      facts,
    };
  });
}

/**
 * The architectures that every known image has.
 * @param schedulable architectures that nodes can have; empty: no bound
 * @returns sorted; empty if they share none; `undefined` if no image constrains anything
 */
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

/**
 * The common architectures of the images within the allowed ones.
 * @param common `undefined`: the images constrain nothing, or are unknown. The allowed ones apply even then
 */
export function withinAllowed(
  common: readonly string[] | undefined,
  { allowed, schedulableArchitectures: schedulable }: Policy,
): readonly string[] | undefined {
  if (allowed === undefined) return common;
  const { architectures } = allowed;
  const possible = schedulable.length === 0 ? architectures : intersection(architectures, schedulable);
  return common === undefined ? possible : intersection(common, possible);
}

/** The decision if all images are known: their common architectures. */
export function requiredArchitectures(common: readonly string[] | undefined): Draft {
  if (common === undefined) {
    return draft('unconstrained', undefined, 'unconstrained', 'no image constrains the architecture');
  }
  const text = `all known images can run on ${common.join(', ')}`;
  return draft('placed', common, 'required-architectures', text);
}

/** The names in both lists, in the order of the first. */
export function intersection(a: readonly string[], b: readonly string[]): readonly string[] {
  if (a === b) return a;
  if (b.length <= maxArchitectures) return a.filter((name) => b.includes(name));
  const wanted = new Set(b);
  return a.filter((name) => wanted.has(name));
}
