/**
 * Facts as memory keeps them: what many images have in common is kept once (`Details`), the rest is as small as it can be.
 * An entry is never changed; newer facts make a new entry.
 */
import type { CredentialSourceName } from '../../credentials/credential.ts';
import type { FactsError, ImageFacts } from '../facts/facts.ts';
import type { Interned } from './intern.ts';
import { sharedScope, type Scope } from './scope.ts';
import type { Linked } from './lru.ts';
import type { Platform } from '../platforms/platform.ts';
import { compact, mapEntryBytes, numberBytes, objectBytes, textBytes } from './size.ts';

export interface Details {
  readonly mediaType: string | undefined;
  readonly platforms: readonly Platform[];
  readonly credentialSource: CredentialSourceName;
  readonly endpoint: string;
  /** Only `not-an-image`, which is knowledge rather than a failure. */
  readonly error: FactsError | undefined;
}

export interface Entry extends Linked<Entry> {
  readonly scope: Scope;
  readonly digest: string;
  readonly details: Interned<Details>;
  /** Monotonic time at which a registry confirmed it; before the process started for what was restored. */
  readonly confirmedAt: number;
  /** Monotonic time before which it is not revalidated again. */
  pausedUntil: number;
}

/** The part of facts that is interned. */
export function detailsOf(facts: ImageFacts): Details {
  return {
    mediaType: facts.mediaType === undefined ? undefined : compact(facts.mediaType),
    platforms: facts.platforms.map(({ os, architecture, variant }) => ({
      os: compact(os),
      architecture: compact(architecture),
      ...(variant !== undefined && { variant: compact(variant) }),
    })),
    credentialSource: facts.credentialSource,
    endpoint: compact(facts.endpoint),
    error: facts.error && { code: facts.error.code, message: compact(facts.error.message) },
  };
}

/** Stands in no platform, media type or host. */
const separator = '\0';

/** A text that is equal for facts with equal details only. */
export function detailsText(facts: ImageFacts): string {
  const { mediaType = '', platforms, credentialSource, endpoint, error } = facts;
  let text = mediaType + separator + credentialSource + separator + endpoint;
  for (const { os, architecture, variant = '' } of platforms) {
    text += separator + os + separator + architecture + separator + variant;
  }
  return error ? text + separator + error.code + separator + JSON.stringify(error.message) : text;
}

/** What details cost in memory. */
export function detailsBytes(details: Details): number {
  let bytes = objectBytes(5) + textBytes(details.mediaType) + textBytes(details.endpoint);
  if (details.error) bytes += objectBytes(2) + textBytes(details.error.message);
  for (const { os, architecture, variant } of details.platforms) {
    bytes += objectBytes(4) + textBytes(os) + textBytes(architecture) + textBytes(variant);
  }
  return bytes;
}

/**
 * Makes an entry.
 * @param key under which it is found, with its scope
 */
export function makeEntry(
  key: string,
  scope: Scope,
  digest: string,
  details: Interned<Details>,
  confirmedAt: number,
): Entry {
  const indexes = scope === sharedScope ? 2 : 1;
  return {
    key: compact(key),
    scope,
    digest: compact(digest),
    details,
    confirmedAt,
    pausedUntil: Number.NEGATIVE_INFINITY,
    bytes:
      objectBytes(10) +
      textBytes(key) +
      textBytes(digest) +
      textBytes(scope) +
      2 * numberBytes +
      indexes * mapEntryBytes,
    listed: false,
    newer: undefined,
    older: undefined,
  };
}
