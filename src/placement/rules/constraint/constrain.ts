/**
 * The architectures of the pod, before its preferences: those of the first rule that applies. A rollout then
 * chooses among them.
 */
import { printable } from '../../../names/printable.ts';
import type { Reason } from '../../decision.ts';
import type { RuleInput } from '../input.ts';
import { draft, reason, type Draft } from '../rules.ts';
import { noCommonArchitecture } from './no-common.ts';
import { keepOwnConstraint } from './own.ts';
import { withinRollout } from './rollout.ts';
import { unknownImage } from './unknown.ts';
import { widenConstraint } from './widen.ts';

/** @returns also the input of all further rules: if the pod is widened, without its own constraint */
export function constrain(input: RuleInput): { readonly now: RuleInput; readonly draft: Draft } {
  const widening = widenConstraint(input);
  const now = widening?.fields ? { ...input, fields: widening.fields } : input;
  const base =
    widening?.draft ??
    keepOwnConstraint(now) ??
    noCommonArchitecture(now) ??
    unknownImage(now) ??
    requiredArchitectures(now);
  const chosen = withinRollout(now, base);
  const more = [...(widening?.reasons ?? []), ...explainAllowed(now, chosen)];
  if (more.length === 0) return { now, draft: chosen };
  return { now, draft: { ...chosen, reasons: [...chosen.reasons, ...more] } };
}

/** If all images are known: their common architectures. */
function requiredArchitectures({ common }: RuleInput): Draft {
  if (common === undefined) {
    return draft('unconstrained', undefined, 'unconstrained', 'no image constrains the architecture');
  }
  const text = `all known images can run on ${common.join(', ')}`;
  return draft('placed', common, 'required-architectures', text);
}

function explainAllowed({ policy: { allowed } }: RuleInput, { outcome }: Draft): readonly Reason[] {
  if (allowed === undefined || outcome === 'own-constraint') return [];
  const architectures = printable(allowed.architectures.join(', '), 200);
  return [reason('allowed-architectures', `${printable(allowed.origin, 320)} allows ${architectures}`)];
}
