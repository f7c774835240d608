/** Unknown images in words: for people who create pods, and with more detail for the log and `explain`. */
import type { FactsError, FactsErrorCode, ImageFacts } from '../../../images/facts/facts.ts';
import { listed, maxImageBytes, printable } from '../../../names/printable.ts';
import type { ImageVerdict } from '../../decision.ts';

const maxMessageBytes = 2048;

/** `image: unauthorized: …` for each unknown image, bounded, for people who create pods. */
export function describeUnknown(images: readonly ImageVerdict[]): string {
  return listed(images.filter(isUnknown), describe, maxMessageBytes);
}

/**
 * For people who create pods. The message of a failed lookup is only for the log and `explain`, because it
 * can reveal open ports, files of a node, proxies and agents. The name of a setting reveals nothing.
 */
const publicTexts: ReadonlyMap<string, string> = new Map([
  ['not-found', 'the registry has no such image; check the name and the tag'],
  [
    'unauthorized',
    'the registry requires a valid credential: a pull secret, or a credential or plugin of the nodes (kubeletConfig)',
  ],
  [
    'forbidden',
    'the registry refuses access, or archwright may not inspect images there; ask an administrator',
  ],
  ['rate-limited', 'too many requests; archwright tries again'],
  ['unavailable', 'the registry cannot be reached or used now; archwright tries again'],
  ['not-an-image', 'it is not a container image'],
  ['too-large', 'its manifest or config is too large'],
]);

/** The pull secrets may be right. */
const pluginText =
  'the registry requires a valid credential, and a credential plugin of the nodes (kubeletConfig) gave none; archwright explain names the cause';

/** The registry answered, so these messages reveal no port. They can name files of a node. */
const answered: ReadonlySet<string> = new Set(['unauthorized', 'not-found', 'rate-limited']);

/** A closed port is unavailable, and a port behind a firewall times out: both have one name. */
export function publicCode(code: string): string {
  return code === 'timeout' ? 'unavailable' : code;
}

/**
 * Facts as people may see them who may read the Secrets of the pod's namespace: what a registry answered with
 * the credentials, and of other failures neither the message nor the endpoint.
 */
export function publicFacts(facts: ImageFacts): ImageFacts {
  const { image, error } = facts;
  const isAnswered = error?.cause === 'plugin' || (error !== undefined && answered.has(error.code));
  if (error === undefined || (isAnswered && facts.source !== 'override')) return facts;
  const message = publicText({ image, unknown: error.code, facts });
  // Every code that `publicCode` returns is one of these.
  const code = publicCode(error.code) as FactsErrorCode;
  const hint = error.hint === undefined ? {} : { hint: error.hint };
  return { ...facts, endpoint: '', error: { code, message, ...hint } };
}

/** Overrides and references are the user's own texts. */
function publicText({ unknown, facts }: Pick<ImageVerdict, 'image' | 'unknown' | 'facts'>): string {
  const { code, message } = facts?.error ?? { code: unknown ?? 'unknown', message: '' };
  const isHarmless = facts?.source === 'override' || code === 'invalid-reference';
  if (isHarmless) return message;
  const { hint, cause } = facts?.error ?? {};
  const text =
    cause === 'plugin' ? pluginText : (publicTexts.get(publicCode(code)) ?? 'its manifest cannot be used');
  if (hint === undefined) return text;
  // Then no registry was asked.
  return code === 'unavailable' ? hint : `${hint} (${text})`;
}

export function isUnknown({ unknown }: ImageVerdict): boolean {
  return unknown !== undefined;
}

/** The same with the messages of failed lookups, for the log and `explain`. */
export function describeDetails(images: readonly ImageVerdict[]): string {
  const describeDetail = (image: ImageVerdict): string =>
    describe(image, image.facts?.error && errorText(image.facts.error));
  return listed(images.filter(isUnknown), describeDetail, maxMessageBytes);
}

/** What to do, and what went wrong. */
export function errorText({ message, hint }: FactsError): string {
  return hint === undefined || message.includes(hint) ? message : `${hint}; ${message}`;
}

function describe(verdict: ImageVerdict, text = publicText(verdict)): string {
  const { image, unknown, facts } = verdict;
  const name = printable(image, maxImageBytes);
  if (facts?.error === undefined) return `${name}: not inspected yet`;
  return `${name}: ${publicCode(unknown ?? facts.error.code)}: ${printable(text, 160)}`;
}

/** Warnings for failed inspections. An image that is not inspected yet needs none. */
export function warningsAbout(images: readonly ImageVerdict[]): readonly string[] {
  return images
    .filter((image) => isUnknown(image) && image.facts?.error !== undefined)
    .map((image) => `archwright: image ${describe(image)}`);
}
