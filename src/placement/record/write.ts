/**
 * Room for the record. The API server refuses an object whose annotations have more than 256 KiB together (apimachinery
 * `ValidateAnnotationsSize`), and a pod that was just below it must not be refused because of ours. So the record first goes
 * without what is only for people, then it is left out.
 */
import type { Pod, PodTemplate } from '../../kube/api/objects.ts';
import { keys } from '../../names/keys.ts';
import type { Added, PlacementDecision } from '../decision.ts';
import { recordText } from './read.ts';

const maxAnnotationsBytes = 256 * 1024;

/** A UTF-16 unit has at most so many bytes of UTF-8. */
const bytesPerUnit = 3;

/**
 * The record of a decision as far as the pod has room for it.
 * @returns `undefined` where there is none
 */
export function recordThatFits(
  { metadata }: Pick<Pod | PodTemplate, 'metadata'>,
  decision: PlacementDecision,
  added: Added,
): string | undefined {
  // In a file of a person, a number may stand where the API server takes texts only.
  const others = Object.entries(metadata?.annotations ?? {}).filter(
    ([key, value]) => key !== keys.decision && typeof value === 'string',
  );
  const whole = recordText(decision, added);
  if (fits(others, whole)) return whole;
  const short = recordText(decision, added, { withImages: false });
  return fits(others, short) ? short : undefined;
}

function fits(others: readonly (readonly [string, string])[], record: string): boolean {
  const texts = [keys.decision, record, ...others.flat()];
  const units = texts.reduce((sum, text) => sum + text.length, 0);
  if (units * bytesPerUnit <= maxAnnotationsBytes) return true;
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) <= maxAnnotationsBytes;
}
