/**
 * The images share no architecture. `deny` refuses the pod; the message names each image and its
 * architectures. `pend` requires an architecture that no node has. `allow` admits the pod with a warning.
 */
import { defaultOs } from '../../../names/platform.ts';
import { listed, maxImageBytes, printable } from '../../../names/printable.ts';
import type { ImageVerdict } from '../../decision.ts';
import { describeLabels } from '../nodes/labels.ts';
import type { RuleInput } from '../input.ts';
import { draft, type Draft } from '../rules.ts';

/** People read the message in a terminal. Further images are only counted. */
const maxMessageBytes = 2048;

/** `image has amd64, arm64; …` for each image that constrains, bounded. */
export function describeImages(images: readonly ImageVerdict[], os: string): string {
  const constraining = images.filter((image) => image.architectures !== undefined);
  return listed(constraining, (image) => describeImage(image, os), maxMessageBytes);
}

function describeImage(verdict: ImageVerdict, os: string): string {
  const { image, architectures, fit } = verdict;
  const name = printable(image, maxImageBytes);
  const cannot = [...(fit?.leftOut ?? [])].map(([architecture, why]) => `${architecture} not: ${why}`);
  const refusing = [...(fit?.refusing ?? [])].map(
    ([group, why]) => `not all of ${group.class.architecture}: ${why}`,
  );
  const details = [...new Set([...cannot, ...refusing])].slice(0, maxDetails).join('; ');
  if (architectures?.length === 0 && details !== '') return `${name} runs on no node (${details})`;
  return `${name} has ${describeArchitectures(verdict, os)}${details === '' ? '' : ` (${details})`}`;
}

const maxDetails = 2;

/** `amd64, arm64`, or `no platform for linux, only windows/amd64`. @param os of the pod */
export function describeArchitectures(
  { architectures = [], facts }: Pick<ImageVerdict, 'architectures' | 'facts'>,
  os: string,
): string {
  if (architectures.length > 0) return printable(architectures.join(', '), 100);
  const others = facts?.platforms.filter((each) => each.os !== os) ?? [];
  const names = [...new Set(others.map((each) => `${each.os}/${each.architecture}`))].join(', ');
  return printable(`no platform for ${printable(os, 20)}${names === '' ? '' : `, only ${names}`}`, 100);
}

/** Why there is no common architecture, for the person who applies the pod. */
export function explainNoCommon({ images, os, policy, matchedArchitectures }: RuleInput): string {
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
  const details = describeImages(images, os);
  const on = os === defaultOs ? '' : ` on ${printable(os, 20)}`;
  return details === ''
    ? `there is no architecture${bound}`
    : `no architecture${bound} can run all images${on}: ${details}`;
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
