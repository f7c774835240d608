/** Why a pod cannot run on an architecture by what it chooses itself, whatever its images have. */
import type { Pod } from '../../src/kube/api/objects.ts';
import { printable } from '../../src/names/printable.ts';
import type { OwnFields } from '../../src/placement/decision.ts';
import { permittedBy } from '../../src/placement/pod/terms.ts';
import { ownFieldsOf } from '../../src/placement/record/own-fields.ts';
import { recordedIn } from '../../src/placement/record/read.ts';
import { ownArchitecturesOf, selectedBy } from '../../src/placement/rules/constraint/own.ts';

export type Choice = Pick<OwnFields, 'nodeSelector' | 'terms'>;

export interface Exclusion {
  /** The field that excludes the architecture. */
  readonly cause: 'selector' | 'affinity';
  readonly why: string;
}

/**
 * What a pod chooses itself, without what archwright added. The record of that is trusted, because nothing is
 * decided here, and the settings at that time may differ from the user's.
 */
export function choiceOf(pod: Pick<Pod, 'metadata' | 'spec'>): Choice {
  const { nodeSelector, terms } = ownFieldsOf(pod.spec, recordedIn({ pod, waiting: true }));
  return { nodeSelector, terms };
}

/** @returns `undefined`: the pod may use nodes of the architecture */
export function exclusionOf(choice: Choice, architecture: string): Exclusion | undefined {
  const selected = selectedBy(choice);
  if (selected?.includes(architecture) === false)
    return { cause: 'selector', why: requirementText(selected) };
  if (permittedBy(choice.terms, architecture)) return undefined;
  const named = ownArchitecturesOf({ nodeSelector: {}, terms: choice.terms })?.architectures;
  const why = named ? requirementText(named) : `the pod excludes ${architecture} by its affinity`;
  return { cause: 'affinity', why };
}

function requirementText(architectures: readonly string[]): string {
  const which = printable(architectures.join(', '), 200) || 'an architecture that does not exist';
  return `the pod requires ${which}`;
}
