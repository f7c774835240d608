/**
 * A pod keeps its own architecture constraint: an architecture label in its nodeSelector, or one architecture
 * or a pinned node in every required term that is not empty (`pod/terms.ts`). A person's constraint has
 * precedence over image facts, so the pod is neither gated nor refused. If its images contradict it, it gets
 * a warning. At admission, the nodeSelector of a RuntimeClass is already in the pod and counts as its own.
 */
import type { NodeSelectorTerm } from '../../../kube/api/objects.ts';
import { isArchitecture, maxArchitectures } from '../../../names/architecture.ts';
import { keys } from '../../../names/keys.ts';
import { printable } from '../../../names/printable.ts';
import { byName, own } from '../../../names/values.ts';
import type { OwnFields } from '../../decision.ts';
import { describeLabels } from '../nodes/labels.ts';
import {
  constrainsItself,
  isEmptyTerm,
  keptTerms,
  namedArchitectures,
  nodesPinnedBy,
  permits,
  pinsNode,
} from '../../pod/terms.ts';
import type { RuleInput } from '../input.ts';
import { draft, type Draft } from '../rules.ts';
import { describeImages } from './no-common.ts';

interface Chosen {
  /** Sorted; `undefined`: that of the pinned node. */
  readonly architectures: readonly string[] | undefined;
}

export function ownConstraintOf(fields: OwnFields): Chosen | undefined {
  const isKept = (term: NodeSelectorTerm): boolean => isEmptyTerm(term) || constrainsItself(term);
  return selectedBy(fields) || fields.terms?.every(isKept) ? ownArchitecturesOf(fields) : undefined;
}

/** @returns `undefined`: the pod does not name its architectures, or not in every term */
export function ownArchitecturesOf(fields: Pick<OwnFields, 'nodeSelector' | 'terms'>): Chosen | undefined {
  const bySelector = selectedBy(fields);
  if (bySelector !== undefined) return { architectures: bySelector };
  const found = new Set<string>();
  let anyNode = false;
  for (const term of fields.terms?.filter((each) => !isEmptyTerm(each)) ?? [{}]) {
    const named = namedArchitectures(term);
    if (named === undefined && !constrainsItself(term)) return undefined;
    if (named === undefined && pinsNode(term)) anyNode = true;
    for (const name of named ?? []) if (isArchitecture(name)) found.add(name);
  }
  return { architectures: anyNode ? undefined : [...found].sort(byName).slice(0, maxArchitectures) };
}

export function selectedBy({ nodeSelector }: Pick<OwnFields, 'nodeSelector'>): readonly string[] | undefined {
  const stable = own(nodeSelector, keys.architectureLabel);
  const beta = own(nodeSelector, keys.betaArchitectureLabel);
  const value = stable ?? beta;
  if (value === undefined) return undefined;
  const contradicts = stable !== undefined && beta !== undefined && stable !== beta;
  return contradicts || !isArchitecture(value) ? [] : [value];
}

/** @returns `undefined` if the pod has no constraint of its own */
export function keepOwnConstraint({
  fields,
  fit,
  images,
  os,
  matchedArchitectures,
}: RuleInput): Draft | undefined {
  const constraint = ownConstraintOf(fields);
  if (constraint === undefined) return undefined;
  const { architectures } = constraint;
  const { architectures: possible } = fit;
  const tolerated =
    architectures === undefined ? possible : architectures.filter((name) => possible?.includes(name) ?? true);
  const kept =
    architectures === undefined
      ? 'its node'
      : `the architecture (${printable(architectures.join(', '), 200) || 'none'})`;
  const text = `the pod constrains ${kept} itself and keeps that`;
  const warnings = [
    ...(possible?.length === 0
      ? [`archwright: no architecture can run all images: ${describeImages(images, os)}`]
      : []),
    ...contradictoryLabels(architectures, matchedArchitectures),
  ];
  return draft('own-constraint', undefined, 'own-constraint', text, {
    warnings,
    ...(tolerated && { tolerated }),
  });
}

function contradictoryLabels(
  architectures: readonly string[] | undefined,
  matched: Readonly<Record<string, string>>,
): readonly string[] {
  const named = Object.values(matched);
  if (named.length === 0 || architectures === undefined) return [];
  if (architectures.some((architecture) => named.every((name) => name === architecture))) return [];
  const which = printable(architectures.join(', '), 60) || 'no architecture';
  return [
    `archwright: the pod constrains ${which} itself, but its node must have ${describeLabels(matched)}`,
  ];
}

/**
 * The requirement is ANDed to the pod's own terms. If these exclude every required architecture, for example
 * by `NotIn`, the pod stays pending.
 */
export function warnIfOwnTermsExclude(
  { fields: { terms } }: RuleInput,
  required: readonly string[] | undefined,
): readonly string[] {
  if (terms === undefined || terms.length === 0 || !required?.length) return [];
  if (terms.some((term) => required.some((architecture) => permits(term, architecture)))) return [];
  return [
    `archwright: the pod's own node affinity excludes all that its images can run on: ${required.join(', ')}`,
  ];
}

/**
 * Warns if a node that the images cannot run on matches what the pod itself names, an architecture or a node.
 * A term with such a name is kept as it is, also beside terms that get the requirement.
 */
export function warnIfWrongNodesMatch({
  fields,
  fit: { architectures: possible },
  nodeArchitecture = () => undefined,
}: RuleInput): readonly string[] {
  const kept = keptTerms(fields.terms);
  const selected = selectedBy(fields);
  if (!possible?.length || (kept.length === 0 && selected === undefined)) return [];
  const can = `but its images can only run on ${possible.join(', ')}`;
  const wrong = (architecture: string): boolean => !possible.includes(architecture);
  const nodes = kept.flatMap(nodesPinnedBy).flatMap((node) => {
    const architecture = nodeArchitecture(node);
    return architecture !== undefined && wrong(architecture)
      ? [`archwright: the pod chooses node ${printable(node, 63)} (${architecture}), ${can}`]
      : [];
  });
  const named = selected ?? kept.flatMap((term) => [...(namedArchitectures(term) ?? [])]);
  const which = [...new Set(named)].filter(wrong).sort(byName);
  if (which.length === 0) return nodes;
  return [...nodes, `archwright: the pod allows ${printable(which.join(', '), 80)}, ${can}`];
}
