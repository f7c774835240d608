/**
 * `constraints: widen`: a pod that names architectures, in its nodeSelector or by `In` in its required terms,
 * may also run on the others that all of its images have. Charts often pin amd64 although their images have
 * had arm64 for years.
 *
 * - Only a pod that is created, or a template, for its warnings: nodeSelector and required terms of a pod
 *   that waits can only narrow (KEP-3838). A DaemonSet keeps its nodes.
 * - A pod of a rollout is widened, and then gated. Its record has what it named, so its decision is the same
 *   as at its creation.
 * - An architecture is added only if every image has it for certain, and no node of it refuses an image.
 * - The pod keeps every node that it could have without this rule.
 * - What the pod excludes, by `NotIn`, stays excluded.
 */
import { isArchitectureKey, maxArchitectures } from '../../../names/architecture.ts';
import { maxImageBytes, printable } from '../../../names/printable.ts';
import { byName } from '../../../names/values.ts';
import type { ImageVerdict, OwnFields, Reason, Widened } from '../../decision.ts';
import { isEmptyTerm, namedArchitectures, namesNode, permittedBy } from '../../pod/terms.ts';
import { isNaming, namesArchitectures, withNames, withoutNames } from '../../record/own-fields.ts';
import { intersection, type CommonFit } from '../images/common.ts';
import type { RuleInput } from '../input.ts';
import { isPinnedByLabel } from '../preference/prefer.ts';
import { draft, reason, type Draft } from '../rules.ts';
import { ownConstraintOf, selectedBy } from './own.ts';

/** Either what the pod gets, with its own fields for all other rules, or why it is not widened. */
export interface Widening {
  readonly fields?: OwnFields;
  readonly draft?: Draft;
  readonly reasons?: readonly Reason[];
}

/** @returns `undefined` under `keep`, and if the pod names no architecture */
export function widenConstraint(input: RuleInput): Widening | undefined {
  const { images, fit, common } = input;
  const fields = input.waiting ? beforeItWaited(input) : input.fields;
  if (input.policy.constraints !== 'widen' || !fields || !namesArchitectures(fields)) return undefined;
  const kept = (why: string): Widening | undefined =>
    input.waiting ? undefined : { reasons: [reason('constraint-not-widened', why)] };
  const obstacle = obstacleIn(input, fields) ?? unknownAmong(images);
  if (obstacle !== undefined) return kept(obstacle);
  const named = namedAlike(fields);
  if (named === undefined)
    return kept('its required terms differ in the architectures that they name, or name many');
  const { rollout } = input.policy;
  // It is there already, and would be taken away from it.
  if (rollout && named.architectures.includes(rollout.architecture))
    return kept(`it names the architecture of ArchitectureRollout ${rollout.name}`);
  const isOwnConstraint = ownConstraintOf(fields) !== undefined;
  if (!isOwnConstraint && input.policy.preferenceMode === 'hard') return kept('a preference pins the pod');
  // A pod's own constraint has precedence over the architectures that a custom resource allows.
  const possible = intersection((isOwnConstraint ? fit.architectures : common) ?? [], named.architectures);
  const before = possible.filter((name) => permittedBy(fields.terms, name));
  if (before.length === 0)
    return kept(
      fit.architectures ? 'its images cannot run on what it names' : 'its images name no architecture',
    );
  const own = withoutNames(fields, named.widened);
  const others = (fit.architectures ?? []).filter((name) => !before.includes(name));
  const allowed = others.filter((name) => common?.includes(name) && permittedBy(own.terms, name));
  const more = allowed.filter((name) => isCertain(name, images, fit));
  if (more.length === 0) return kept(whyNone(others, allowed));
  const architectures = [...before, ...more].sort(byName);
  const names = printable(named.architectures.join(', '), 50);
  const text = `the pod names ${names}; all of its images can run on ${architectures.join(', ')}`;
  return {
    fields: own,
    draft: draft('placed', architectures, 'constraint-widened', text, {
      warnings: [
        `archwright: the pod's own architecture (${names}) is widened to ${printable(architectures.join(', '), 80)}, ` +
          'which all of its images have (constraints: widen)',
      ],
      widened: named.widened,
      ...(isOwnConstraint && { keptArchitectures: before }),
    }),
  };
}

/** @returns `undefined`: it was not widened, or another webhook has named an architecture since then */
function beforeItWaited({ fields, removed }: RuleInput): OwnFields | undefined {
  return removed && !namesArchitectures(fields) ? withNames(fields, removed) : undefined;
}

function whyNone(others: readonly string[], allowed: readonly string[]): string {
  if (others.length === 0) return 'its images can run on no other architecture';
  const names = printable((allowed.length > 0 ? allowed : others).join(', '), 200);
  if (allowed.length === 0) return `${names} is excluded by the pod or by a PodPlacementConfig`;
  return `not all nodes of ${names} are certain to run its images`;
}

/** What keeps the names, whatever the images have. */
function obstacleIn(input: RuleInput, fields: OwnFields): string | undefined {
  const { pod, template, matchedArchitectures } = input;
  if (template === 'DaemonSet') return 'a DaemonSet keeps its nodes';
  if (fields.namedAgain) return 'another webhook named the architecture again';
  if (pod.spec.runtimeClassName) return 'its RuntimeClass may need certain nodes';
  if (namesNode(fields)) return 'the pod names its node itself';
  if (Object.keys(matchedArchitectures).length > 0)
    return 'a label of the pod names the architecture of its node';
  return isPinnedByLabel(input) ? 'a label or annotation of the pod pins it' : undefined;
}

/** An image that is never pulled, or that no registry can be asked for, may have one architecture only. */
function unknownAmong(images: readonly ImageVerdict[]): string | undefined {
  const unknown = images.find(
    ({ unknown: code, facts }) =>
      code !== undefined || facts === undefined || facts.error?.code === 'invalid-reference',
  );
  return unknown && `the architectures of ${printable(unknown.image, maxImageBytes)} are not known`;
}

/** Longer lists would not fit into a record. */
const maxExpressions = 4;

/** The names that all required terms, and the nodeSelector, agree on; `undefined` if they do not. */
function namedAlike({ nodeSelector, terms }: OwnFields) {
  const selected = selectedBy({ nodeSelector });
  const sets = terms?.map((term) => (isEmptyTerm(term) ? new Set<string>() : namedArchitectures(term)));
  const [first] = sets ?? [];
  const expressions = first === undefined ? [] : (terms?.[0]?.matchExpressions?.filter(isNaming) ?? []);
  const isAlike = sets?.every((set) => isSame(set, first)) ?? true;
  const isShort =
    expressions.length <= maxExpressions &&
    expressions.every(({ values }) => (values?.length ?? 0) <= maxArchitectures);
  if (!isAlike || !isShort) return undefined;
  const both = selected ?? [...(first ?? [])];
  const labels = Object.entries(nodeSelector).filter(([key]) => isArchitectureKey(key));
  const widened: Widened = { nodeSelector: Object.fromEntries(labels), expressions };
  return { architectures: both, widened };
}

function isSame(a: ReadonlySet<string> | undefined, b: ReadonlySet<string> | undefined): boolean {
  return (
    a === b ||
    (a !== undefined && b !== undefined && a.size === b.size && [...a].every((name) => b.has(name)))
  );
}

function isCertain(name: string, images: readonly ImageVerdict[], { refusing }: CommonFit): boolean {
  return (
    images.every(({ fit }) => !fit?.dependsOn.has(name)) &&
    [...refusing.keys()].every((group) => group.class.architecture !== name)
  );
}
