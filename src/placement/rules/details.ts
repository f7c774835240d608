/** Reasons that do not change the outcome. */
import { isBytecode, maxArchitectures } from '../../names/architecture.ts';
import { printable } from '../../names/printable.ts';
import type { ImageVerdict, Reason } from '../decision.ts';
import { isEmptyTerm, keptTerms } from '../pod/terms.ts';
import type { RuleInput } from './input.ts';
import { reason } from './rules.ts';

export function explainDetails({ policy, images, fields, recorded }: RuleInput): readonly Reason[] {
  const { schedulableArchitectures: schedulable } = policy;
  const { terms } = fields;
  const reasons: Reason[] = [];
  const isBounded =
    schedulable.length > 0 &&
    images.some(({ architectures }) => architectures?.some((name) => !schedulable.includes(name)));
  if (isBounded)
    reasons.push(reason('schedulable-architectures', `only ${printable(schedulable.join(', '), 200)}`));
  const free = images.filter(
    ({ architectures, unknown }) => architectures === undefined && unknown === undefined,
  );
  for (const { image, facts } of free.slice(0, maxArchitectures)) {
    reasons.push(reason('image-constrains-nothing', `${printable(image, 200)}: ${whyFree(facts)}`));
  }
  for (const { image, facts } of images) {
    if (facts?.brokenOn === undefined) continue;
    const text = `${printable(image, 200)} ended with an exec format error on ${facts.brokenOn.join(', ')}`;
    reasons.push(reason('exec-format-error', text));
  }
  for (const { image, facts } of images) {
    if (facts?.requiredLevel === undefined) continue;
    reasons.push(reason('cpu-level', `${printable(image, 200)} needs x86-64-v${facts.requiredLevel}`));
  }
  const kept = keptTerms(terms).length;
  if (kept > 0) reasons.push(reason('own-term-constraint', `${kept} of the pod's required terms`));
  if (terms && (terms.length === 0 || terms.some(isEmptyTerm))) {
    reasons.push(reason('empty-term', "the pod's required node affinity has a part that matches no node"));
  }
  if (recorded !== undefined)
    reasons.push(reason('replaces-recorded', 'the additions of an earlier call are replaced'));
  return reasons;
}

function whyFree(facts: ImageVerdict['facts']): string {
  if (facts === undefined) return 'it is never pulled';
  const isWasm = facts.platforms.some(({ architecture }) => isBytecode(architecture));
  return facts.error?.code ?? (isWasm ? 'it is WebAssembly' : 'it has no platform');
}
