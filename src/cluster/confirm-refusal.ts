/**
 * Confirms facts before they refuse a pod: the tag may have been pushed again with the missing architecture.
 * So images that share no architecture are looked up once more, with one HEAD each.
 */
import { BoundedMap } from '../async/bounded-map.ts';
import type { ImageUse } from '../placement/pod/images.ts';
import type { Clock } from '../async/clock.ts';
import type { FactsByImage, FactsOfPod, FactsWanted } from './facts-of-pod.ts';

/** Controllers retry a refused pod many times in the first seconds. A person needs longer to push. */
const confirmedForMs = 5000;
/** Images that refuse pods at a time; beyond that, some are looked up more often. */
const maxConfirmed = 1024;

/**
 * The images to look up before facts refuse a pod. `undefined`: none has a tag's facts from memory.
 * @param isConfirmed images that were looked up within `confirmedForMs`
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
    // For a pod that always pulls, the configuration decides how fresh facts are.
    if (!isRemembered || pullPolicy !== 'IfNotPresent' || image.includes('@') || isConfirmed(image))
      return [];
    return [{ ...use, pullPolicy: 'Always' }];
  });
  return uses.length === 0 ? undefined : { ...wanted, uses };
}

/** @returns all facts, newer ones included; `undefined` if there is nothing to look up */
export type Confirm = (wanted: FactsWanted, facts: FactsByImage) => Promise<FactsByImage> | undefined;

export function createConfirm(factsOfPod: FactsOfPod, clock: Clock): Confirm {
  const confirmedAt = new BoundedMap<string, number>(maxConfirmed);

  function isConfirmed(image: string): boolean {
    const at = confirmedAt.get(image);
    return at !== undefined && clock.monotonic() - at < confirmedForMs;
  }

  return (wanted, facts) => {
    const lookups = toConfirm(wanted, facts, isConfirmed);
    if (lookups === undefined) return undefined;
    return Promise.resolve(factsOfPod(lookups)).then((newer) => {
      const now = clock.monotonic();
      // The next pod repeats a lookup that timed out.
      for (const { image } of lookups.uses)
        if (newer.get(image)?.stale === false) confirmedAt.set(image, now);
      return new Map([...facts, ...newer]);
    });
  };
}
