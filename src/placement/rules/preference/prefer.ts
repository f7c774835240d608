/**
 * Preferred architectures. The first source applies that the images can meet at least in part: the pod's
 * label, the pod's annotation of weights, the preferences of the policy (custom resources by priority, then
 * the configuration). If a person wrote a preference into the pod that cannot be met, a warning is returned.
 *
 * The pod's own preferred node affinity on an architecture has precedence over all of these. A DaemonSet has
 * no preference, because it runs on every node. The template of another workload has the preference of its
 * pods, for warnings. While an image is unknown, preferences wait: they could draw the pod to a node that
 * cannot run that image. Images that constrain nothing can meet every preference.
 */
import { isArchitectureKey, unknownArchitecture } from '../../../names/architecture.ts';
import { printable } from '../../../names/printable.ts';
import { byName } from '../../../names/values.ts';
import type { Outcome, OwnFields, Reason } from '../../decision.ts';
import { permittedBy } from '../../pod/terms.ts';
import { certainOf } from '../images/common.ts';
import type { RuleInput } from '../input.ts';
import { reason, type Draft, type Rule } from '../rules.ts';
import type { Preference, WeightedArchitecture } from './read.ts';

/** Outcomes with which nothing is preferred, whatever the policy. */
const withoutPreference: ReadonlySet<Outcome> = new Set(['own-constraint', 'denied', 'pending']);

/** @returns `required`: the architectures that the pod may have: under mode `hard` only the preferred one */
export function preferredOf(input: RuleInput, draft: Draft) {
  const { policy, template, fields } = input;
  const { outcome, required } = draft;
  const isSettled = withoutPreference.has(outcome);
  // A pin would take away the architectures that the pod named itself.
  const mode = isSettled || draft.widened ? 'soft' : policy.preferenceMode;
  const preferences = isSettled || template === 'DaemonSet' ? [] : input.preferences;
  if (preferences.length === 0) return { required, preferred: [], mode, warnings: [], reasons: [] };
  if (prefersItself(fields)) {
    const message = 'the pod prefers architectures by its own node affinity and keeps that';
    return { required, preferred: [], mode, warnings: [], reasons: [reason('preference-own', message)] };
  }
  const isKnown = outcome === 'placed' || outcome === 'unconstrained';
  const bound = isKnown ? boundOf(input, draft) : [];
  const isPossible = (name: string): boolean =>
    (bound?.includes(name) ?? unknownArchitecture(name) === undefined) && permittedBy(fields.terms, name);
  const warnings: string[] = [];
  const reasons: Reason[] = [];
  for (const preference of preferences) {
    const { weights, inPod } = preference;
    if (weights?.length === 0) continue;
    const met = weights?.filter(({ architecture }) => isPossible(architecture)) ?? [];
    if (met.length !== weights?.length) {
      const mistake = firstMistake(preference, [...(bound ?? []), ...policy.schedulableArchitectures]);
      const text = mistake ?? describeUnmet(preference, isKnown, isPossible, bound);
      reasons.push(reason('preference-left-out', text));
      // A gated pod is decided again once its images are known, and so are the pods of a template.
      const isDecidedAgain = policy.onUnknownImage === 'gate' || template !== undefined;
      const isPostponed = !isKnown && weights !== undefined && isDecidedAgain && mistake === undefined;
      if (inPod && !isPostponed) warnings.push(`archwright: ${text}`);
    }
    if (met.length === 0) continue;
    const preferred = met.toSorted((a, b) => b.weight - a.weight || byName(a.architecture, b.architecture));
    const chosen = mode === 'hard' ? preferred.slice(0, 1) : preferred;
    const names = chosen.map(({ architecture }) => architecture);
    const text = chosen.map(({ architecture, weight }) => `${architecture}=${weight}`).join(', ');
    reasons.push(reason(preference.rule, `${preference.origin} prefers ${text}`));
    if (mode === 'hard') reasons.push(reason('preference-hard', `${names.join()} is required`));
    return { required: mode === 'hard' ? names : required, preferred: chosen, mode, warnings, reasons };
  }
  return { required, preferred: [], mode, warnings, reasons };
}

/** Whether a person pinned the pod by its own label or annotation. */
export function isPinnedByLabel({ policy, preferences }: RuleInput): boolean {
  return policy.preferenceMode === 'hard' && preferences.some(({ inPod }) => inPod);
}

function prefersItself({ preferred }: OwnFields): boolean {
  return preferred.own.some(({ preference }) =>
    preference?.matchExpressions?.some(({ key }) => isArchitectureKey(key)),
  );
}

/** The architectures that the images are certain to run on; `undefined`: any. */
function boundOf(
  { images, nodes, os, policy: { schedulableArchitectures: schedulable } }: RuleInput,
  { reasons: [why], required }: Draft,
): readonly string[] | undefined {
  if (why?.rule !== ('unconstrained' satisfies Rule)) return certainOf(images, required, nodes, os) ?? [];
  return schedulable.length === 0 ? undefined : schedulable;
}

/** The first name that is probably a mistake. @param others names that are none */
function firstMistake({ origin, weights = [] }: Preference, others: readonly string[]): string | undefined {
  for (const { architecture } of weights) {
    const mistake = unknownArchitecture(architecture, others);
    if (mistake !== undefined) return `${origin}: ${mistake}`;
  }
  return undefined;
}

function describeUnmet(
  { rule, origin, weights }: Preference,
  isKnown: boolean,
  isPossible: (architecture: string) => boolean,
  bound: readonly string[] | undefined,
): string {
  if (weights === undefined) {
    const isAnnotation = rule === 'preferred-weights';
    const form = isAnnotation ? 'weights from 1 to 100, such as arm64=80,amd64=20' : 'an architecture';
    return `${origin} is invalid and ignored; write ${form}`;
  }
  if (!isKnown) return `${origin}: ${namesOf(weights)} waits until every image is known`;
  const unmet = weights.filter(({ architecture }) => !isPossible(architecture));
  const why =
    bound === undefined
      ? "the pod's own node affinity excludes it"
      : `the pod can only run on ${printable(bound.filter(isPossible).join(', '), 80) || 'none'}`;
  return `${origin}: ${namesOf(unmet)} is ignored, ${why}`;
}

function namesOf(weights: readonly WeightedArchitecture[]): string {
  return printable(weights.map(({ architecture }) => architecture).join(', '), 80);
}
