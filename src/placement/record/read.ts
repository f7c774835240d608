/**
 * Reads the annotation `arch.example/decision`, which any user can write. A record that cannot be parsed, or
 * has another version or no valid seal, counts as absent: then everything in the pod is the pod's own. Where
 * records have no seals (an installation without a controller), they count only for what the policy can add.
 */
import * as v from 'valibot';
import type { NodeSelectorRequirement, Pod } from '../../kube/api/objects.ts';
import { isArchitecture, isArchitectureKey, maxArchitectures } from '../../names/architecture.ts';
import { isRecord, isText, own } from '../../names/values.ts';
import { keys } from '../../names/keys.ts';
import { isLabelValue } from '../../names/labels.ts';
import { isLevelKey } from '../../nodes/amd64-level.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import {
  outcomes,
  type Outcome,
  type PlacementInput,
  type Recorded,
  type RolledOut,
  type RecordSeal,
  type Widened,
} from '../decision.ts';
import { hostnameNotIn, preferredTerm } from '../pod/expressions.ts';

export const version = 1;

/** An expression in the record: key and values. Its operator is `In`; excluded nodes are recorded apart. */
export type RecordedExpression = readonly [string, readonly string[]];

/** More than any policy produces. */
const maxReadLength = 32_768;

/** More than any real record has: 16 architectures, 250 excluded nodes, the tolerations of a policy. */
const maxItems = 256;

/** A hostile record could have 20,000 issues, which take 200 ms to collect. */
const firstIssue = { abortEarly: true };

const listOf = <const S extends v.GenericSchema>(item: S, most = maxItems) =>
  v.pipe(v.array(item), v.maxLength(most));
const architecture = v.pipe(v.string(), v.check(isArchitecture));
const expressions = listOf(v.strictTuple([v.string(), listOf(v.string())]));
const field = v.exactOptional(v.string());
const toleration = v.object({
  key: field,
  operator: field,
  value: field,
  effect: field,
  tolerationSeconds: v.exactOptional(v.number()),
});

const weighted = v.strictTuple([architecture, v.pipe(v.number(), v.integer())]);
const added = v.object({
  // One list for each architecture at most. Each of the pod's terms is compared with each list.
  terms: v.optional(listOf(expressions, maxArchitectures), []),
  match: v.optional(expressions, []),
  excludedNodes: v.optional(listOf(v.string()), []),
  lookalikes: v.optional(listOf(v.string()), []),
  made: v.optional(v.boolean(), false),
  preferred: v.optional(listOf(weighted), []),
  tolerations: v.optional(listOf(toleration), []),
  pinned: v.optional(architecture),
});

const shape = v.object({
  v: v.literal(version),
  architectures: v.optional(listOf(architecture)),
  imagesKey: v.string(),
  // Valibot takes a list for an object.
  added: v.pipe(v.custom(isRecord), added),
});

/** @returns `undefined` if there is no record, or none that archwright could have written */
export function recordedIn({
  pod,
  waiting = false,
  seal,
  policy,
}: Pick<PlacementInput, 'pod' | 'waiting' | 'seal'> & { readonly policy?: Policy }): Recorded | undefined {
  const content = contentIn(pod);
  const isSealed = content !== undefined && (seal === undefined || hasSeal(pod, seal));
  if (!isSealed && !waiting) return undefined;
  const { success, output } = v.safeParse(shape, content, firstIssue);
  if (!success) return undefined;
  const { architectures, imagesKey, added } = output;
  // Without seals, anyone could have archwright remove what another webhook requires.
  const isChecked = policy !== undefined && seal === undefined && !waiting;
  if (isChecked && ![...added.terms, added.match].flat().every((each) => canRequire(policy, each)))
    return undefined;
  const exclusion = hostnameNotIn(added.excludedNodes);
  // Nothing can be put back into a pod that waits.
  const widened = waiting ? undefined : readWidened(content?.['widened']);
  return {
    architectures,
    imagesKey,
    added: {
      ...added,
      terms: added.terms.map((list) => [...expressionsOf(list), ...exclusion]),
      match: [...expressionsOf(added.match), ...exclusion],
      // Preferred terms are all that is ever removed from a waiting pod.
      preferred: isSealed ? added.preferred.map(([name, weight]) => preferredTerm(name, weight)) : [],
      pinned: added.pinned,
    },
    isProvisional: content?.['provisional'] === true,
    ...(widened && { widened }),
  };
}

/** What was removed from a pod that waits, or runs. @returns `undefined` without a valid seal */
export function recordedWidened({ pod, seal }: Pick<PlacementInput, 'pod' | 'seal'>): Widened | undefined {
  return seal === undefined || hasSeal(pod, seal) ? readWidened(contentIn(pod)?.['widened']) : undefined;
}

const sealStart = ',"seal":"';

/** The seal is the last field of the record, and is over the text before it. */
export function withSeal(text: string, seal: RecordSeal): string {
  return `${text.slice(0, -1)}${sealStart}${seal.sign(text)}"}`;
}

function hasSeal({ metadata }: Pick<Pod, 'metadata'>, seal: RecordSeal): boolean {
  const text = own(metadata?.annotations, keys.decision) ?? '';
  const at = text.lastIndexOf(sealStart);
  return at !== -1 && seal.verify(`${text.slice(0, at)}}`, text.slice(at + sealStart.length, -2));
}

/** A record for people, counts and a first selection: any user can write it. */
export function uncheckedRecord(pod: Pick<Pod, 'metadata'>) {
  const { outcome, architectures, widened, provisional, rollout, images } = contentIn(pod) ?? {};
  return {
    outcome: outcomes.find((each) => each === outcome),
    /** The required ones. */
    architectures: Array.isArray(architectures) ? architectures.filter(isText) : undefined,
    isWidened: isRecord(widened),
    /** Whether the additions of a template are an upper bound. */
    isProvisional: provisional === true,
    rollout: isTextPair(rollout) ? rolledOut(...rollout) : undefined,
    /** Images with their architectures or error codes. */
    images: Array.isArray(images) ? images.filter(isTextPair) : [],
  };
}

/** The record for people. A pod to which nothing was added keeps no record, but its label. */
export function decidedOutcome(pod: Pick<Pod, 'metadata'>): Outcome | undefined {
  const label = own(pod.metadata?.labels, keys.placementState);
  return uncheckedRecord(pod).outcome ?? outcomes.find((each) => each === label);
}

function rolledOut(name: string, side: string): RolledOut | undefined {
  return side === 'Target' || side === 'Other' ? { name, side } : undefined;
}

function contentIn({ metadata }: Pick<Pod, 'metadata'>): Readonly<Record<string, unknown>> | undefined {
  const text = own(metadata?.annotations, keys.decision);
  if (typeof text !== 'string' || text.length > maxReadLength) return undefined;
  try {
    const content: unknown = JSON.parse(text);
    return isRecord(content) ? content : undefined;
  } catch {
    return undefined; // archwright writes only JSON.
  }
}

const architectureKey = v.pipe(v.string(), v.check(isArchitectureKey));
const namedValues = v.pipe(listOf(v.custom<string>(isLabelValue)), v.minLength(1));
const widenedShape = v.object({
  nodeSelector: v.optional(v.record(architectureKey, architecture), {}),
  expressions: v.optional(listOf(v.strictTuple([architectureKey, namedValues])), []),
});

/** Anything but what can name an architecture counts as absent. */
function readWidened(content: unknown): Widened | undefined {
  const { success, output } = v.safeParse(widenedShape, content, firstIssue);
  if (!success || Object.keys(output.nodeSelector).length + output.expressions.length === 0) return undefined;
  return { nodeSelector: output.nodeSelector, expressions: expressionsOf(output.expressions) };
}

/** Whether archwright adds such an expression: architectures, a level of x86-64, or node labels of this policy. */
function canRequire(policy: Policy, [key, [value]]: RecordedExpression): boolean {
  return (
    key === keys.architectureLabel ||
    isLevelKey(key) ||
    policy.matchNodeLabels.includes(key) ||
    Object.values(policy.architectures).some(
      ({ requireNodeLabels }) => value !== undefined && own(requireNodeLabels, key) === value,
    )
  );
}

function expressionsOf(list: readonly RecordedExpression[]): readonly NodeSelectorRequirement[] {
  return list.map(([key, values]) => ({ key, operator: 'In', values }));
}

function isTextPair(value: unknown): value is readonly [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every(isText);
}
