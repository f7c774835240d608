/**
 * The images share no architecture. `deny` refuses the pod; the message names each image and its
 * architectures. `pend` requires an architecture that no node has. `allow` admits the pod with a warning.
 */
import { listed, maxImageBytes, printable } from '../../../names/printable.ts';
import type { ImageVerdict } from '../../decision.ts';
import { describeLabels } from '../../pod/matched-labels.ts';
import type { RuleInput } from '../input.ts';
import { draft, type Draft } from '../rules.ts';

/** People read the message in a terminal. Further images are only counted. */
const maxMessageBytes = 2048;

/** `image has amd64, arm64; …` for each image that constrains, bounded. */
export function describeImages(images: readonly ImageVerdict[]): string {
  const constraining = images.filter((image) => image.architectures !== undefined);
  return listed(constraining, describeImage, maxMessageBytes);
}

function describeImage({ image, architectures, fit }: ImageVerdict): string {
  const name = printable(image, maxImageBytes);
  const cannot = [...(fit?.leftOut ?? [])].map(([architecture, why]) => `${architecture} not: ${why}`);
  const refusing = [...(fit?.refusing ?? [])].map(
    ([group, why]) => `not all of ${group.class.architecture}: ${why}`,
  );
  const details = [...new Set([...cannot, ...refusing])].slice(0, maxDetails).join('; ');
  if (architectures?.length === 0 && details !== '') return `${name} runs on no node (${details})`;
  const list = architectures?.length ? printable(architectures.join(', '), 100) : 'no platform for this OS';
  return `${name} has ${list}${details === '' ? '' : ` (${details})`}`;
}

const maxDetails = 2;

/** Why there is no common architecture, for the person who applies the pod. */
export function explainNoCommon({ images, policy, matchedArchitectures }: RuleInput): string {
  const { schedulableArchitectures: schedulable, allowed } = policy;
  const matched = describeLabels(matchedArchitectures);
  const among = (names: readonly string[]): string => `(${printable(names.join(', '), 200)})`;
  const bound = [
    ...(schedulable.length === 0 ? [] : [` of the schedulable ones ${among(schedulable)}`]),
    ...(allowed
      ? [` of those that ${printable(allowed.origin, 320)} allows ${among(allowed.architectures)}`]
      : []),
    ...(matched === '' ? [] : [` of the pod's labels (${matched})`]),
  ].join(', and');
  const details = describeImages(images);
  return details === ''
    ? `there is no architecture${bound}`
    : `no architecture${bound} can run all images: ${details}`;
}

/** @returns `undefined` if the images share an architecture, or constrain nothing */
export function noCommonArchitecture(input: RuleInput): Draft | undefined {
  const { policy, common } = input;
  if (common?.length !== 0) return undefined;
  const message = explainNoCommon(input);
  if (policy.onNoCommonArchitecture === 'deny') {
    return draft('denied', [], 'no-common-architecture-deny', message, { message });
  }
  const warnings = [`archwright: ${message}`];
  if (policy.onNoCommonArchitecture === 'pend') {
    return draft('pending', [], 'no-common-architecture-pend', message, { message, warnings });
  }
  return draft('unconstrained', undefined, 'no-common-architecture-allow', message, { warnings });
}
