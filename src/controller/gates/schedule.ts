/**
 * When a pod is looked at again: 1, 2, 4, 8 and 16 seconds after its creation, then every 15, spread by its UID. The times
 * follow from its age alone, so a new leader goes on where the last one was and nothing is counted in the pod.
 */
import { hashText } from '../../placement/record/hash.ts';

const secondMs = 1000;
const doublings = 4;
/** The longest pause. */
export const mostMs = 15 * secondMs;
/** So much later at most, for pods that were created at the same time. */
const spread = 0.2;

/**
 * The pause until the next look, milliseconds; above 0.
 * @param ageMs of the pod, from 0
 */
export function nextLookMs(ageMs: number, uid: string): number {
  const offset = 1 + spread * (Number.parseInt(hashText([uid]), 36) / 2 ** 32);
  for (let doubling = 0; doubling <= doublings; doubling += 1) {
    const at = secondMs * 2 ** doubling * offset;
    if (at > ageMs) return at - ageMs;
  }
  const last = secondMs * 2 ** doublings * offset;
  return mostMs - ((ageMs - last) % mostMs);
}
