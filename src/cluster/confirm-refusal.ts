/**
 * Before images that share no architecture refuse a pod: what memory says of a tag may be older than the tag. Whoever was told
 * that an image lacks an architecture pushes it again under the same name, and must not hear the same for as long as memory
 * believes itself. So these images are asked about once more, as for a pod that pulls always: a HEAD each, and only here.
 */
import { createGenerations } from '../images/memory/generations.ts';
import type { ImageUse } from '../placement/pod/images.ts';
import type { Clock } from '../async/clock.ts';
import type { FactsByImage, FactsOfPod, FactsWanted } from './facts-of-pod.ts';

/** A pod that is refused is tried again by its controller many times in the first seconds. A person needs longer to push. */
const confirmedForMs = 5000;
/** Images that refuse pods at a time; of more, some are asked about more often. */
const maxRemembered = 1024;

/**
 * What to ask before facts may refuse a pod.
 * @param isConfirmed images that were asked about a moment ago
 * @returns `undefined` where all of them are as good as they can be: by digest, an override, or just come from a registry
 */
export function toConfirm(
  wanted: FactsWanted,
  facts: FactsByImage,
  isConfirmed: (image: string) => boolean = () => false,
): FactsWanted | undefined {
  const uses = wanted.uses.flatMap((use): readonly ImageUse[] => {
    const { image, pullPolicy } = use;
    const known = facts.get(image);
    const isRemembered = known !== undefined && known.error === undefined && known.source === 'memory';
    // A pod that pulls always has been asked for already, as far as the configuration wants that.
    if (!isRemembered || pullPolicy !== 'IfNotPresent' || image.includes('@') || isConfirmed(image))
      return [];
    return [{ ...use, pullPolicy: 'Always' }];
  });
  return uses.length === 0 ? undefined : { ...wanted, uses };
}

/**
 * Asks again.
 * @returns all facts, with what is newer; `undefined` where there is nothing to ask
 */
export type Confirm = (wanted: FactsWanted, facts: FactsByImage) => Promise<FactsByImage> | undefined;

/** Makes the asker; it holds nothing that needs to be closed. */
export function createConfirm(options: { readonly factsOfPod: FactsOfPod; readonly clock: Clock }): Confirm {
  const { factsOfPod, clock } = options;
  const confirmedAt = createGenerations<number>(maxRemembered);

  function isConfirmed(image: string): boolean {
    const at = confirmedAt.get(image);
    return at !== undefined && clock.monotonic() - at < confirmedForMs;
  }

  return (wanted, facts) => {
    const asked = toConfirm(wanted, facts, isConfirmed);
    if (asked === undefined) return undefined;
    return Promise.resolve(factsOfPod(asked)).then((newer) => {
      const now = clock.monotonic();
      for (const { image } of asked.uses) {
        // What did not come in time is asked for again by the next pod.
        if (newer.get(image)?.stale === false) confirmedAt.set(image, now);
      }
      return new Map([...facts, ...newer]);
    });
  };
}
