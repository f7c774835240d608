/**
 * Image facts from outside the process: from an agent or from a file. Nothing about them is trusted: every
 * field is checked for its type, its alphabet and its length before it gets near a pod. Unknown fields are
 * dropped: agents may be newer.
 */
import { credentialSourceNames } from '../../credentials/credential.ts';
import { factsErrorCodes, type FactsError, type FactsSource, type ImageFacts } from './facts.ts';
import { asObject, type JsonObject } from '../../http/json.ts';
import { isArchitecture } from '../../names/architecture.ts';
import { isNonEmptyLabelValue } from '../../names/labels.ts';
import { isSpelling, maxSpellingLength, type FullPlatform } from '../../names/platform.ts';
import { isDigest } from '../references/grammar.ts';

/** Real indexes list fewer than 30 platforms. More only take memory from other images. */
export const maxPlatforms = 64;
/** A path has at most 255 characters, a tag 128, a digest 135; a domain has no limit of its own. */
const maxImageLength = 1024;
/** RFC 6838 §4.2: 127 characters for each of the two names. */
export const maxMediaTypeLength = 255;
/** RFC 1035: 255 characters for a host name; then a port. */
const maxEndpointLength = 261;
const maxMessageLength = 1024;
/** RFC 3339 with nanoseconds and an offset has 35. */
const maxDateLength = 40;

const sources: readonly FactsSource[] = ['registry', 'memory', 'override'];
const isPrintable = (value: string): boolean => /^[\x21-\x7e]*$/.test(value);
const rfc3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Why something cannot be image facts. */
export class InvalidFacts extends Error {
  override readonly name = 'InvalidFacts';
  readonly code = 'invalid-facts';
  readonly temporary = false;
  /** The field at fault. */
  readonly where: string;
  constructor(where: string, problem: string) {
    super(`image facts: ${where} ${problem}`);
    this.where = where;
  }
}

/** Checks parsed JSON and copies the known fields. @throws InvalidFacts */
export function readFacts(value: unknown): ImageFacts {
  const fields = object(value, 'facts');
  const image = text(fields['image'], 'image', maxImageLength, isPrintable);
  if (image === '') throw new InvalidFacts('image', 'is empty');
  const error = fields['error'] === undefined ? undefined : readError(fields['error']);
  const platforms = readPlatforms(fields['platforms']);
  if (error && platforms.length > 0)
    throw new InvalidFacts('platforms', 'must be empty where there is an error');
  const mediaType = fields['mediaType'];
  return {
    image,
    ...(fields['digest'] !== undefined && {
      digest: text(fields['digest'], 'digest', 135, isDigest, 'is not a digest'),
    }),
    ...(mediaType !== undefined && {
      mediaType: text(mediaType, 'mediaType', maxMediaTypeLength, isPrintable),
    }),
    platforms,
    source: oneOf(fields['source'], 'source', sources),
    credentialSource: oneOf(fields['credentialSource'], 'credentialSource', credentialSourceNames),
    endpoint: text(fields['endpoint'], 'endpoint', maxEndpointLength, isPrintable),
    confirmedAt: date(fields['confirmedAt'], 'confirmedAt'),
    stale: boolean(fields['stale'], 'stale'),
    ...(error && { error }),
  };
}

function readPlatforms(value: unknown): FullPlatform[] {
  if (!Array.isArray(value)) throw new InvalidFacts('platforms', 'is not a list');
  if (value.length > maxPlatforms) throw new InvalidFacts('platforms', `has more than ${maxPlatforms} items`);
  return value.map((item: unknown) => {
    const { os, architecture, variant, osVersion, written, unnamed, needsFeatures } = object(
      item,
      'platforms',
    );
    return {
      os: text(os, 'platforms.os', 63, isNonEmptyLabelValue),
      architecture: text(
        architecture,
        'platforms.architecture',
        63,
        isArchitecture,
        'is not an architecture',
      ),
      ...(variant !== undefined && { variant: text(variant, 'platforms.variant', 63, isNonEmptyLabelValue) }),
      ...(osVersion !== undefined && {
        osVersion: text(osVersion, 'platforms.osVersion', 63, isNonEmptyLabelValue),
      }),
      ...(written !== undefined && {
        written: text(written, 'platforms.written', maxSpellingLength, isSpelling),
      }),
      ...(unnamed !== undefined && boolean(unnamed, 'platforms.unnamed') && { unnamed: true as const }),
      ...(needsFeatures !== undefined &&
        boolean(needsFeatures, 'platforms.needsFeatures') && { needsFeatures: true as const }),
    };
  });
}

function readError(value: unknown): FactsError {
  const { code, message, retryAfterMs, cause } = object(value, 'error');
  return {
    code: oneOf(code, 'error.code', factsErrorCodes),
    message: text(message, 'error.message', maxMessageLength),
    ...(retryAfterMs !== undefined && { retryAfterMs: duration(retryAfterMs, 'error.retryAfterMs') }),
    ...(cause === 'plugin' && { cause }),
  };
}

function object(value: unknown, where: string): JsonObject {
  const found = asObject(value);
  if (!found) throw new InvalidFacts(where, 'is not an object');
  return found;
}

function text(
  value: unknown,
  where: string,
  maxLength: number,
  isValid: (text: string) => boolean = () => true,
  problem = 'has characters that cannot be there',
): string {
  if (typeof value !== 'string') throw new InvalidFacts(where, 'is not a string');
  if (value.length > maxLength) throw new InvalidFacts(where, `is longer than ${maxLength} characters`);
  if (!isValid(value)) throw new InvalidFacts(where, problem);
  return value;
}

function oneOf<Word extends string>(value: unknown, where: string, words: readonly Word[]): Word {
  const found = words.find((word) => word === value);
  if (found === undefined) throw new InvalidFacts(where, `is none of ${words.join(', ')}`);
  return found;
}

function date(value: unknown, where: string): string {
  const given = text(value, where, maxDateLength, (written) => rfc3339.test(written));
  if (Number.isNaN(Date.parse(given))) throw new InvalidFacts(where, 'is not a date');
  return given;
}

function boolean(value: unknown, where: string): boolean {
  if (typeof value !== 'boolean') throw new InvalidFacts(where, 'is neither true nor false');
  return value;
}

function duration(value: unknown, where: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) {
    throw new InvalidFacts(where, 'is not a duration');
  }
  return value;
}
