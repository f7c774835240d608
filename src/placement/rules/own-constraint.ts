/**
 * A pod that constrains its architecture itself keeps that: by `kubernetes.io/arch` or `beta.kubernetes.io/arch` in its
 * nodeSelector, or in every required term that can match at all (`terms.ts` says what counts), or by pinning its node.
 * A person's word stands above what a registry says, so such a pod waits for nothing and is refused for nothing; where
 * its images contradict it, it gets a warning. Scheduling of a RuntimeClass is in the pod by then and counts as its own.
 */
import {
  byName,
  isArchitecture,
  isArchitectureKey,
  maxArchitectures,
  own,
} from '../../names/architecture.ts';
import { keys } from '../../names/keys.ts';
import type { ImageVerdict } from '../decision.ts';
import type { Draft } from './draft.ts';
import type { OwnFields } from '../record/own-fields.ts';
import { describeImages } from './no-common.ts';
import { reason } from './rules.ts';
import { constrainsItself, isEmptyTerm, permits, pinsNode } from '../pod/terms.ts';
import { printable } from '../../names/printable.ts';

export interface OwnConstraint {
  /** The architectures it leaves, sorted; `undefined`: whatever its node has. */
  readonly architectures: readonly string[] | undefined;
}

/** The pod's own constraint, or `undefined` where some node selector term of it is free of one. */
export function ownConstraintOf(parts: OwnFields): OwnConstraint | undefined {
  const bySelector = selected(parts);
  if (bySelector !== undefined) return { architectures: bySelector };
  if (parts.terms === undefined) return undefined;
  const terms = parts.terms.filter((term) => !isEmptyTerm(term));
  if (!terms.every(constrainsItself)) return undefined;
  const found = new Set<string>();
  let anyNode = false;
  for (const term of terms) {
    const named = (term.matchExpressions ?? []).flatMap(({ key, operator, values }) =>
      isArchitectureKey(key) && operator === 'In' ? (values ?? []) : [],
    );
    if (named.length === 0 && pinsNode(term)) anyNode = true;
    for (const name of named) if (isArchitecture(name) && permits(term, name)) found.add(name);
  }
  return { architectures: anyNode ? undefined : [...found].sort(byName).slice(0, maxArchitectures) };
}

function selected({ nodeSelector }: OwnFields): readonly string[] | undefined {
  const stable = own(nodeSelector, keys.architectureLabel);
  const beta = own(nodeSelector, keys.betaArchitectureLabel);
  const value = stable ?? beta;
  if (value === undefined) return undefined;
  const contradicts = stable !== undefined && beta !== undefined && stable !== beta;
  return contradicts || !isArchitecture(value) ? [] : [value];
}

/**
 * The decision for a pod with its own constraint.
 * @param constraint its own
 * @param possible architectures that the known images share; `undefined`: they say nothing
 */
export function keepOwnConstraint(
  constraint: OwnConstraint,
  possible: readonly string[] | undefined,
  images: readonly ImageVerdict[],
): Draft {
  const { architectures } = constraint;
  const tolerated =
    architectures === undefined ? possible : architectures.filter((name) => possible?.includes(name) ?? true);
  const kept =
    architectures === undefined
      ? 'its node'
      : `the architecture (${printable(architectures.join(', '), 200) || 'none'})`;
  return {
    outcome: 'own-constraint',
    required: undefined,
    ...(tolerated && { tolerated }),
    warnings: contradiction(architectures, possible, images),
    reasons: [reason('own-constraint', `the pod constrains ${kept} itself and keeps that`)],
  };
}

function contradiction(
  architectures: readonly string[] | undefined,
  possible: readonly string[] | undefined,
  images: readonly ImageVerdict[],
): readonly string[] {
  if (possible === undefined) return [];
  if (possible.length === 0)
    return [`archwright: no architecture can run all images: ${describeImages(images)}`];
  const lacking = architectures?.filter((name) => !possible.includes(name)) ?? [];
  if (lacking.length === 0) return [];
  const which = printable(lacking.join(', '), 80);
  return [`archwright: the pod allows ${which}, but its images can only run on ${possible.join(', ')}`];
}
