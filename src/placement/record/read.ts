/**
 * The annotation `arch.example/decision`: what was decided and added, in compact, versioned JSON, so that a second call
 * replaces what the first one added. Anybody can write an annotation. What cannot be read, has another version or shape,
 * or names what this policy could not have added is treated as absent: then everything in the pod is its own.
 */
import type {
  NodeSelectorRequirement,
  Pod,
  PreferredSchedulingTerm,
  Toleration,
} from '../../kube/api/objects.ts';
import type { Policy } from '../../policy/effective/policy.ts';
import { byName, isArchitecture, maxArchitectures, own } from '../../names/architecture.ts';
import { isLabelValue, isNonEmptyLabelValue } from '../../names/labels.ts';
import { keys } from '../../names/keys.ts';
import { outcomes } from '../decision.ts';
import type {
  Added,
  ImageVerdict,
  Outcome,
  PlacementDecision,
  PlacementInput,
  Recorded,
} from '../decision.ts';
import { hashText } from './hash.ts';
import { architectureIn, hostnameNotIn } from '../rules/node-labels.ts';
import { preferenceModeOf } from '../rules/preferred.ts';
import { maxExcludedNodes } from '../rules/pullable-nodes.ts';
import { couldHaveAdded } from '../rules/tolerations.ts';
import { maxImageBytes, printable } from '../../names/printable.ts';

const version = 1;

/** Characters of images, which are kept for people; what undoes an addition is kept whole, bounded by the policy. */
const maxDetailLength = 3200;

/** More than any policy makes us write. */
const maxReadLength = 32_768;

/** More than the labels or tolerations of any sane policy. */
const maxItems = 256;

/** An expression in the record: key and values; the operator is `In`. What leaves nodes out is recorded once, apart. */
type Pair = readonly [string, readonly string[]];

/** A short stand-in for the images decided upon. */
export function imagesKeyOf(os: string, images: readonly ImageVerdict[]): string {
  return hashText([os, ...images.map(({ image }) => image)]);
}

/**
 * The annotation's text for a decision.
 * @param added what the patch adds
 * @param options `withImages`: what was known of each image, for people
 */
export function recordText(
  decision: PlacementDecision,
  added: Added,
  { withImages = true }: { readonly withImages?: boolean } = {},
): string {
  // Whatever changes in a template rolls out all of its pods, so there only what undoes the additions is kept.
  const forPeople = decision.template === undefined;
  const { excludedNodes } = added;
  const [terms, match] =
    excludedNodes.length === 0
      ? [added.terms, added.match]
      : [added.terms.map((list) => list.slice(0, -1)), added.match.slice(0, -1)];
  // What is undefined is not written.
  return JSON.stringify({
    v: version,
    outcome: forPeople ? decision.outcome : undefined,
    architectures: decision.required,
    imagesKey: imagesKeyOf(decision.os, decision.images),
    added: {
      terms: filled(terms)?.map(pairs),
      match: filled(match) && pairs(match),
      excludedNodes: filled(excludedNodes),
      lookalikes: filled(added.lookalikes),
      made: added.made || undefined,
      preferred: filled(added.preferred)?.map(weighted),
      tolerations: filled(added.tolerations),
      pinned: added.pinned,
    },
    images: forPeople && withImages ? imageDetail(decision.images) : undefined,
  });
}

function filled<Item>(list: readonly Item[]): readonly Item[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** As many images as fit, each with its architectures or why it is unknown; a number at the end counts the rest. */
function imageDetail(images: readonly ImageVerdict[]): readonly (readonly [string, string] | number)[] {
  const shown: (readonly [string, string])[] = [];
  let room = maxDetailLength;
  for (const { image, architectures, unknown } of images) {
    const name = printable(image, maxImageBytes);
    const says = unknown ?? (architectures ? printable(architectures.join(','), maxImageBytes) : '*');
    room -= name.length + says.length;
    if (room < 0) return [...shown, images.length - shown.length];
    shown.push([name, says]);
  }
  return shown;
}

function pairs(expressions: readonly NodeSelectorRequirement[]): readonly Pair[] {
  return expressions.map(({ key, values }) => [key, values ?? []]);
}

function weighted({ weight, preference }: PreferredSchedulingTerm): readonly [string, number] {
  return [preference.matchExpressions?.[0]?.values?.[0] ?? '', weight];
}

/**
 * Reads the annotation of a pod, as far as it is believed.
 * @returns `undefined` where there is none, or none of ours
 */
export function recordedIn({
  pod,
  policy,
  waiting,
}: Pick<PlacementInput, 'pod' | 'policy' | 'waiting'>): Recorded | undefined {
  const content = contentIn(pod);
  if (content?.['v'] !== version || !isRecord(content['added'])) return undefined;
  const { architectures, imagesKey } = content;
  const added = readAdded(content['added'], policy, waiting ?? false);
  if (added === undefined || typeof imagesKey !== 'string') return undefined;
  if (architectures !== undefined && !isListOf(architectures, isArchitectureName, maxArchitectures))
    return undefined;
  return { architectures: architectures?.toSorted(byName), imagesKey, added };
}

/** The outcome that a pod's annotation names, believed without a further look: for people, metrics and a first sorting. */
export function recordedOutcome(pod: Pick<Pod, 'metadata'>): Outcome | undefined {
  const outcome = contentIn(pod)?.['outcome'];
  return outcomes.find((each) => each === outcome);
}

/** Images and what was known of them, as the annotation has them; for people. */
export function recordedImages(pod: Pick<Pod, 'metadata'>): readonly (readonly [string, string])[] {
  const images = contentIn(pod)?.['images'];
  return Array.isArray(images) ? images.filter(isTextPair) : [];
}

function contentIn({ metadata }: Pick<Pod, 'metadata'>): Readonly<Record<string, unknown>> | undefined {
  const text = own(metadata?.annotations, keys.decision);
  if (typeof text !== 'string' || text.length > maxReadLength) return undefined;
  try {
    const content: unknown = JSON.parse(text);
    return isRecord(content) ? content : undefined;
  } catch {
    return undefined; // Not ours: we only ever write JSON.
  }
}

function readAdded(
  content: Readonly<Record<string, unknown>>,
  policy: Policy,
  waiting: boolean,
): Added | undefined {
  const {
    terms = [],
    match = [],
    excludedNodes = [],
    lookalikes = [],
    made = false,
    preferred = [],
    tolerations = [],
    pinned,
  } = content;
  if (!isListOf(terms, isPairs, maxArchitectures) || !isPairs(match) || typeof made !== 'boolean')
    return undefined;
  if (!isListOf(lookalikes, isText, maxItems) || !isListOf(excludedNodes, isText, maxExcludedNodes))
    return undefined;
  if (!isListOf(preferred, isWeighted, maxArchitectures)) return undefined;
  if (!isListOf(tolerations, isToleration, maxItems)) return undefined;
  if (pinned !== undefined && !isArchitectureName(pinned)) return undefined;
  const believed =
    waiting ||
    (terms.every((group) => group.length > 0 && group.every((pair) => isOurs(pair, policy))) &&
      match.every((pair) => isMatched(pair, policy)) &&
      couldHaveExcluded(excludedNodes, policy));
  const others = hostnameNotIn(excludedNodes);
  return {
    terms: believed ? terms.map((list) => [...expressions(list), ...others]) : [],
    match: believed ? [...expressions(match), ...others] : [],
    excludedNodes: believed ? excludedNodes : [],
    lookalikes,
    made: believed && made,
    preferred: preferred.map(([architecture, weight]) => preferredTerm(architecture, weight)),
    tolerations: tolerations.filter((toleration) => waiting || couldHaveAdded(policy, toleration)),
    // Only a hard preference pins; any other pin is somebody else's, and so is what it stands on.
    pinned: preferenceModeOf(policy) === 'hard' ? pinned : undefined,
  };
}

/** The preferred term that we write. */
export function preferredTerm(architecture: string, weight: number): PreferredSchedulingTerm {
  return { weight, preference: { matchExpressions: [architectureIn([architecture])] } };
}

function expressions(list: readonly Pair[]): readonly NodeSelectorRequirement[] {
  return list.map(([key, values]) => ({ key, operator: 'In', values }));
}

function isOurs(pair: Pair, policy: Policy): boolean {
  const [key, values] = pair;
  if (isMatched(pair, policy)) return true;
  if (key === keys.architectureLabel) {
    return (
      values.length > 0 &&
      values.every((value, index) => isArchitecture(value) && (values[index - 1] ?? '') < value)
    );
  }
  return Object.values(policy.architectures).some(
    ({ requireNodeLabels }) => values.length === 1 && own(requireNodeLabels, key) === values[0],
  );
}

function couldHaveExcluded(hostnames: readonly string[], policy: Policy): boolean {
  if (hostnames.length === 0) return true;
  return (
    policy.requirePullableNodes &&
    hostnames.every((name, index) => isNonEmptyLabelValue(name) && (hostnames[index - 1] ?? '') < name)
  );
}

function isMatched([key, values]: Pair, policy: Policy): boolean {
  return policy.matchNodeLabels.includes(key) && values.length === 1 && isLabelValue(values[0]);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isListOf<Item>(
  value: unknown,
  isItem: (item: unknown) => item is Item,
  max: number,
): value is readonly Item[] {
  return Array.isArray(value) && value.length <= max && value.every(isItem);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isTextPair(value: unknown): value is readonly [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every(isText);
}

function isArchitectureName(value: unknown): value is string {
  return isText(value) && isArchitecture(value);
}

function isPair(value: unknown): value is Pair {
  return (
    Array.isArray(value) && value.length === 2 && isText(value[0]) && isListOf(value[1], isText, maxItems)
  );
}

function isPairs(value: unknown): value is readonly Pair[] {
  return isListOf(value, isPair, maxItems);
}

function isWeighted(value: unknown): value is readonly [string, number] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [architecture, weight] = value as readonly unknown[];
  return isArchitectureName(architecture) && typeof weight === 'number' && Number.isInteger(weight);
}

function isToleration(value: unknown): value is Toleration {
  if (!isRecord(value)) return false;
  const { key, operator, value: text, effect, tolerationSeconds: seconds } = value;
  return (
    [key, operator, text, effect].every((field) => field === undefined || isText(field)) &&
    (seconds === undefined || typeof seconds === 'number')
  );
}
