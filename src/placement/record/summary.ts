/**
 * The annotation `arch.example/summary`: the decision in one line, for `kubectl describe pod`, which cuts
 * lines at 140 characters. No program reads it. Templates have none, because every change restarts all of
 * their pods.
 */
import { printable } from '../../names/printable.ts';
import type { Outcome, PlacementDecision } from '../decision.ts';
import { describeUnknown } from '../rules/images/unknown.ts';

/** Room for the name of an unknown image and the reason. Events have the whole text. */
export const maxSummaryBytes = 256;

export function summaryOf(decision: PlacementDecision): string {
  const { outcome, required, widened, preferred } = decision;
  const names = preferred.map(({ architecture }) => architecture).join(', ');
  const preference = names === '' ? '' : `; prefers ${names}`;
  const text = `${outcomeText(outcome, required, widened !== undefined)}: ${why(decision)}${preference}`;
  return printable(text, maxSummaryBytes);
}

/** `placed, requires amd64, arm64`; of a pod that stays pending only that. */
export function outcomeText(
  outcome: Outcome,
  required: readonly string[] | undefined,
  isWidened: boolean,
): string {
  if (required === undefined || required.length === 0) return outcome;
  return `${outcome}, ${isWidened ? 'widened to' : 'requires'} ${printable(required.join(', '), 200)}`;
}

/** Anyone who may read the pod can read it, so it has only the public text about an unknown image. */
function why({ outcome, images, message, reasons }: PlacementDecision): string {
  if (outcome === 'placed') return 'all images can run there';
  const isOwn = outcome === 'own-constraint';
  return (isOwn ? '' : describeUnknown(images)) || (message ?? reasons[0]?.message ?? '');
}
