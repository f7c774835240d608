/** Each image: the architectures that it can run on for the pod's operating system, or why it is unknown. */
import type { ImageFacts } from '../../../images/facts/facts.ts';
import { byName } from '../../../names/values.ts';
import type { NodeClasses } from '../../../nodes/node-classes.ts';
import type { ImageVerdict } from '../../decision.ts';
import type { ImageUse } from '../../pod/images.ts';
import { fitOf } from './fit.ts';

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
