/**
 * Image facts from outside the process: from an agent or from a file. Nothing about them is trusted: every
 * field is checked for its type, its alphabet and its length before it gets near a pod. Unknown fields are
 * dropped: agents may be newer.
 */
import * as v from 'valibot';
import { credentialSourceNames } from '../../credentials/credential.ts';
import { readShape } from '../../http/json.ts';
import { isArchitecture } from '../../names/architecture.ts';
import { isNonEmptyLabelValue } from '../../names/labels.ts';
import { isSpelling, maxSpellingLength } from '../../names/platform.ts';
import { isDigest } from '../../registry/manifests/manifest.ts';
import { maxImageLength } from '../references/reference.ts';
import { factsErrorCodes, isOfPod, type ImageFacts } from './facts.ts';

/** Real indexes list fewer than 30 platforms. More only take memory from other images. */
export const maxPlatforms = 64;
/** RFC 6838 §4.2: 127 characters for each of the two names. */
export const maxMediaTypeLength = 255;
/** RFC 1035: 255 characters for a host name; then a port. */
const maxEndpointLength = 261;
const maxMessageLength = 1024;
/** RFC 3339 with nanoseconds and an offset has 35. */
const maxDateLength = 40;

const text = (maxLength: number) => v.pipe(v.string(), v.maxLength(maxLength));
const printable = (maxLength: number) =>
  v.pipe(text(maxLength), v.regex(/^[\x21-\x7e]*$/, 'has characters that cannot be there'));
const labelValue = v.pipe(v.string(), v.check(isNonEmptyLabelValue, 'must be a label value'));
const rfc3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

const platform = v.object({
  os: labelValue,
  architecture: v.pipe(text(63), v.check(isArchitecture, 'must be an architecture')),
  variant: v.exactOptional(labelValue),
  osVersion: v.exactOptional(labelValue),
  written: v.exactOptional(v.pipe(text(maxSpellingLength), v.check(isSpelling, 'must be a platform'))),
  unnamed: v.exactOptional(v.literal(true)),
  needsFeatures: v.exactOptional(v.literal(true)),
});

const failure = v.object({
  code: v.picklist(factsErrorCodes),
  message: text(maxMessageLength),
  retryAfterMs: v.exactOptional(v.pipe(v.number(), v.finite(), v.minValue(0))),
  cause: v.exactOptional(v.unknown()),
});

const facts = v.object({
  image: v.pipe(printable(maxImageLength), v.nonEmpty()),
  digest: v.exactOptional(v.pipe(text(135), v.check(isDigest, 'must be a digest'))),
  mediaType: v.exactOptional(printable(maxMediaTypeLength)),
  platforms: v.pipe(v.array(v.unknown()), v.maxLength(maxPlatforms), v.array(platform)),
  source: v.picklist(['registry', 'memory', 'override']),
  credentialSource: v.picklist(credentialSourceNames),
  endpoint: printable(maxEndpointLength),
  confirmedAt: v.pipe(
    text(maxDateLength),
    v.check((date) => rfc3339.test(date) && !Number.isNaN(Date.parse(date)), 'must be a date'),
  ),
  stale: v.boolean(),
  error: v.exactOptional(failure),
});

/** Why something cannot be image facts. */
export class InvalidFacts extends Error {
  override readonly name = 'InvalidFacts';
  /** @param where the field at fault; empty: all */
  constructor(where: string, problem: string) {
    super(`image facts: ${where === '' ? 'they' : where} ${problem}`);
  }
}

/** The size of a TLS record. A write for each line would cost more than its bytes. */
const chunkLength = 16 * 1024;

/** Shared facts as newline-delimited JSON in chunks of some KiB, up to a limit. Other facts are left out. */
export function* formatFacts(all: Iterable<ImageFacts>, maxBytes: number): Generator<string> {
  let bytes = 0;
  let chunk = '';
  for (const facts of all) {
    if (isOfPod(facts)) continue;
    const line = `${JSON.stringify(facts)}\n`;
    bytes += Buffer.byteLength(line);
    if (bytes > maxBytes) break;
    chunk += line;
    if (chunk.length < chunkLength) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}

/** Checks parsed JSON and copies the known fields. @throws InvalidFacts */
export function readFacts(value: unknown): ImageFacts {
  const { error, ...read } = readShape(facts, value, (where, problem) => new InvalidFacts(where, problem));
  if (error === undefined) return read;
  if (read.platforms.length > 0) throw new InvalidFacts('platforms', 'must be empty where there is an error');
  const { cause, ...failed } = error;
  return { ...read, error: cause === 'plugin' ? { ...failed, cause } : failed };
}
