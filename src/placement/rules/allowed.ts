/** Architectures that a `PodPlacementConfig` leaves to the pod. They do not apply to a pod with its own constraint. */
import { printable } from '../../names/printable.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import type { Outcome, Reason } from '../decision.ts';
import { intersection } from './required.ts';
import { reason } from './rules.ts';

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

export function explainAllowed({ allowed }: Policy, outcome: Outcome): readonly Reason[] {
  if (allowed === undefined || outcome === 'own-constraint') return [];
  const architectures = printable(allowed.architectures.join(', '), 200);
  return [reason('allowed-architectures', `${printable(allowed.origin, 320)} allows ${architectures}`)];
}
