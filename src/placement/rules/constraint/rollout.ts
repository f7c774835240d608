/**
 * An `ArchitectureRollout` only chooses among the architectures that all images have and the pod permits. If
 * its architecture is not one of them, or the only one, it changes nothing. Nor does it affect templates, pods
 * that a person pins by label or annotation, and pods that must run on the architecture of their group.
 */
import { permittedBy, staysTogether } from '../../pod/terms.ts';
import type { RuleInput } from '../input.ts';
import { isPinnedByLabel } from '../preference/prefer.ts';
import { draft as draftOf, type Draft } from '../rules.ts';

export function withinRollout(input: RuleInput, draft: Draft): Draft {
  const { outcome, required, ...more } = draft;
  const { rollout } = input.policy;
  if (rollout === undefined || input.template !== undefined || isPinnedByLabel(input)) return draft;
  if (outcome !== 'placed' || required === undefined || staysTogether(input.pod.spec)) return draft;
  const { name, architecture, newPods } = rollout;
  const permitted = required.filter((each) => permittedBy(input.fields.terms, each));
  const others = permitted.filter((each) => each !== architecture);
  if (others.length === 0 || others.length === permitted.length) return draft;
  const text = `ArchitectureRollout ${name}`;
  if (newPods === 'Choose') {
    const chosen = draftOf('gated', required, 'rollout-choose', `${text} moves a part of the pods`);
    const reasons = [...chosen.reasons, ...draft.reasons];
    return { ...more, ...chosen, gate: true, warnings: draft.warnings, reasons };
  }
  const isTarget = newPods === 'Target';
  const narrowed = isTarget
    ? draftOf('placed', [architecture], 'rollout-target', `${text} moves the pod to ${architecture}`)
    : draftOf('placed', others, 'rollout-other', `${text} keeps the pod off ${architecture}`);
  return {
    ...more,
    ...narrowed,
    rollout: { name, side: newPods },
    warnings: draft.warnings,
    reasons: [...draft.reasons, ...narrowed.reasons],
  };
}
