/**
 * The architectures of the pod, before its preferences: those of the first rule that applies. A rollout then
 * chooses among them.
 */
import { printable } from '../../../names/printable.ts';
import type { Reason } from '../../decision.ts';
import { permittedBy, staysTogether } from '../../pod/terms.ts';
import type { RuleInput } from '../input.ts';
import { isPinnedByLabel } from '../preference/prefer.ts';
import { draft, reason, type Draft } from '../rules.ts';
import { noCommonArchitecture } from './no-common.ts';
import { keepOwnConstraint } from './own.ts';
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

/**
 * An `ArchitectureRollout` only chooses among the architectures that all images have and the pod permits. If
 * its architecture is not one of them, or the only one, it changes nothing. Nor does it affect templates, pods
 * that a person pins by label or annotation, and pods that must run on the architecture of their group.
 */
function withinRollout(input: RuleInput, base: Draft): Draft {
  const { outcome, required } = base;
  const { rollout } = input.policy;
  if (rollout === undefined || input.template !== undefined || isPinnedByLabel(input)) return base;
  if (outcome !== 'placed' || required === undefined || staysTogether(input.pod.spec)) return base;
  const { name, architecture, newPods } = rollout;
  const permitted = required.filter((each) => permittedBy(input.fields.terms, each));
  const others = permitted.filter((each) => each !== architecture);
  if (others.length === 0 || others.length === permitted.length) return base;
  const text = `ArchitectureRollout ${name}`;
  const side = newPods === 'Choose' ? undefined : newPods;
  const chosen =
    side === undefined
      ? draft('gated', required, 'rollout-choose', `${text} moves a part of the pods`, { gate: true })
      : side === 'Target'
        ? draft('placed', [architecture], 'rollout-target', `${text} moves the pod to ${architecture}`)
        : draft('placed', others, 'rollout-other', `${text} keeps the pod off ${architecture}`);
  const lists = side === undefined ? [chosen, base] : [base, chosen];
  return {
    ...base,
    ...chosen,
    ...(side && { rollout: { name, side } }),
    warnings: base.warnings,
    reasons: lists.flatMap(({ reasons }) => reasons),
  };
}
