/** The template of a workload: nothing is added to it. */
import { boundedWarnings } from '../../names/printable.ts';
import { noAdditions, type PlacementDecision } from '../decision.ts';
import { explainNoCommon } from './constraint/no-common.ts';
import type { RuleInput } from './input.ts';
import { reason, type Rule } from './rules.ts';

/** What holds for the pods of a template too. */
const rulesOfPods: ReadonlySet<string> = new Set<Rule>([
  'constraint-widened',
  'constraint-not-widened',
  'exec-format-error',
  'cpu-level',
]);

/**
 * Templates of workloads stay unchanged, because their pods are placed when they are created. A controller
 * creates these, so the person who applies the template gets the warnings about them.
 */
export function unchangedTemplate(
  { os, images, warnings, reasons }: PlacementDecision,
  input: RuleInput,
): PlacementDecision {
  const { common } = input;
  const message =
    common === undefined
      ? 'its images constrain nothing so far'
      : `its images can run on ${common.join(', ') || 'no common architecture'}`;
  return {
    ...noAdditions,
    outcome: 'unconstrained',
    template: 'workload',
    os,
    images,
    warnings: common?.length === 0 ? refusal(input) : warnings,
    reasons: [reason('workload-template', message), ...reasons.filter(({ rule }) => rulesOfPods.has(rule))],
  };
}

function refusal(input: RuleInput): readonly string[] {
  return boundedWarnings([`archwright: pods of this template cannot be placed: ${explainNoCommon(input)}`]);
}
