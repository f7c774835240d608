/**
 * Writes the annotations `arch.example/summary`, for people, and `arch.example/decision`: the decision and its
 * additions as compact, versioned JSON, so that a later call replaces the additions. `read.ts` reads it.
 *
 * The API server refuses an object with annotations of more than 256 KiB together (apimachinery
 * `ValidateAnnotationsSize`). If a pod has too little room, record and summary are omitted.
 */
import type { NodeSelectorRequirement, Pod, PodTemplate } from '../../kube/api/objects.ts';
import { hashText } from '../../names/hash.ts';
import { keys } from '../../names/keys.ts';
import { maxImageBytes, printable } from '../../names/printable.ts';
import type { Added, ImageVerdict, Outcome, PlacementDecision, Widened } from '../decision.ts';
import { describeUnknown, publicCode } from '../rules/images/unknown.ts';
import { version, withSeal, type RecordedExpression } from './read.ts';

const maxAnnotationsBytes = 256 * 1024;

/** Characters for images. Additions are always complete; the policy bounds them. */
const maxImagesLength = 3200;

/** Room for the name of an unknown image and the reason. Events have the whole text. */
const maxSummaryBytes = 256;

/** Text of the annotations; `undefined`: no annotation. */
export interface WrittenRecord {
  readonly record: string | undefined;
  readonly summary: string | undefined;
}

export const unwritten: WrittenRecord = { record: undefined, summary: undefined };

/** @param summary of the decision; absent in templates */
export function recordThatFits(
  { metadata }: Pick<Pod | PodTemplate, 'metadata'>,
  decision: PlacementDecision,
  added: Added,
  summary: string | undefined,
): WrittenRecord {
  const { seal } = decision;
  const text = recordText(decision, added, isUpperBound(decision, added));
  const written = { record: seal ? withSeal(text, seal) : text, summary };
  return fits(metadata?.annotations ?? {}, written) ? written : unwritten;
}

function fits(
  annotations: Readonly<Record<string, string>>,
  { record = '', summary = '' }: WrittenRecord,
): boolean {
  const texts = [keys.decision, record, keys.summary, summary];
  for (const [key, value] of Object.entries(annotations)) {
    // `explain` reads files, which can have a number where the API server accepts only text.
    if (key !== keys.decision && key !== keys.summary && typeof value === 'string') texts.push(key, value);
  }
  let units = 0;
  for (const text of texts) units += text.length;
  // A UTF-16 unit has at most three bytes of UTF-8.
  return units * 3 <= maxAnnotationsBytes || Buffer.byteLength(texts.join('')) <= maxAnnotationsBytes;
}

/**
 * Whether the record says that the additions are an upper bound. Once all images of a DaemonSet are known, a
 * mark without another change stays: its removal would restart all pods.
 */
export function isUpperBound(decision: PlacementDecision, added: Added): boolean {
  const { template, outcome, os, images, replaces } = decision;
  if (template !== 'DaemonSet') return false;
  const before = replaces?.imagesKey === imagesKeyOf(os, images) ? replaces : undefined;
  const isComplete = before?.isProvisional === false;
  if (outcome === 'allowed-unknown') return !isComplete || before.architectures !== undefined;
  if (before === undefined || isComplete) return false;
  if (images.some(({ unknown }) => unknown !== undefined)) return true;
  const asBefore = { ...decision, required: before.architectures };
  return recordText(asBefore, before.added, true) === recordText(decision, added, true);
}

export function imagesKeyOf(os: string, images: readonly ImageVerdict[]): string {
  return hashText([os, ...images.map(({ image }) => image)]);
}

function recordText(decision: PlacementDecision, added: Added, provisional: boolean): string {
  // Every change of a template restarts all of its pods, so its record has only what undoes the additions.
  const forPeople = decision.template === undefined;
  const { excludedNodes } = added;
  const [terms, match] =
    excludedNodes.length === 0
      ? [added.terms, added.match]
      : [added.terms.map((list) => list.slice(0, -1)), added.match.slice(0, -1)];
  // JSON has no undefined: such fields are omitted.
  return JSON.stringify({
    v: version,
    outcome: forPeople ? decision.outcome : undefined,
    architectures: decision.required,
    imagesKey: imagesKeyOf(decision.os, decision.images),
    provisional: provisional || undefined,
    widened: decision.widened && recordedWidened(decision.widened),
    rollout: decision.rollout && [decision.rollout.name, decision.rollout.side],
    added: {
      terms: filled(terms)?.map(recordedExpressions),
      match: filled(match) && recordedExpressions(match),
      excludedNodes: filled(excludedNodes),
      lookalikes: filled(added.lookalikes),
      made: added.made || undefined,
      preferred: filled(added.preferred)?.map(({ weight, preference }) => [
        preference.matchExpressions?.[0]?.values?.[0] ?? '',
        weight,
      ]),
      tolerations: filled(added.tolerations),
      pinned: added.pinned,
    },
    images: forPeople ? imageDetail(decision.images) : undefined,
  });
}

function recordedWidened({ nodeSelector, expressions }: Widened) {
  return {
    nodeSelector: Object.keys(nodeSelector).length === 0 ? undefined : nodeSelector,
    expressions: filled(expressions) && recordedExpressions(expressions),
  };
}

function filled<Item>(list: readonly Item[]): readonly Item[] | undefined {
  return list.length === 0 ? undefined : list;
}

function recordedExpressions(expressions: readonly NodeSelectorRequirement[]): readonly RecordedExpression[] {
  return expressions.map(({ key, values }) => [key, values ?? []]);
}

/** The images that fit, with their architectures or error codes; a last number counts the rest. */
function imageDetail(images: readonly ImageVerdict[]): readonly (readonly [string, string] | number)[] {
  const shown: (readonly [string, string])[] = [];
  let room = maxImagesLength;
  for (const { image, architectures, unknown } of images) {
    const name = printable(image, maxImageBytes);
    const detail =
      (unknown && publicCode(unknown)) ??
      (architectures ? printable(architectures.join(','), maxImageBytes) : '*');
    room -= name.length + detail.length;
    if (room < 0) return [...shown, images.length - shown.length];
    shown.push([name, detail]);
  }
  return shown;
}

/**
 * The annotation `arch.example/summary`: the decision in one line, for `kubectl describe pod`, which cuts
 * lines at 140 characters. No program reads it. Templates have none, because every change restarts all of
 * their pods.
 */
export function summaryOf(decision: PlacementDecision): string {
  const { outcome, required, widened, preferred } = decision;
  const names = preferred.map(({ architecture }) => architecture).join(', ');
  const preference = names === '' ? '' : `; prefers ${names}`;
  const text = `${outcomeText(outcome, required, widened !== undefined)}: ${why(decision)}${preference}`;
  return printable(text, maxSummaryBytes);
}

/** `placed, requires amd64, arm64`; of a pod that stays pending only that. */
export function outcomeText(
  outcome: Outcome,
  required: readonly string[] | undefined,
  isWidened: boolean,
): string {
  if (required === undefined || required.length === 0) return outcome;
  return `${outcome}, ${isWidened ? 'widened to' : 'requires'} ${printable(required.join(', '), 200)}`;
}

/** Anyone who may read the pod can read it, so it has only the public text about an unknown image. */
function why({ outcome, images, message, reasons }: PlacementDecision): string {
  if (outcome === 'placed') return 'all images can run there';
  const isOwn = outcome === 'own-constraint';
  return (isOwn ? '' : describeUnknown(images)) || (message ?? reasons[0]?.message ?? '');
}
