/**
 * The details of facts. Thousands of images have the same platforms at the same endpoint: such details are
 * kept once, and counted once, for as long as an entry uses them.
 */
import type { CredentialSourceName } from '../../credentials/credential.ts';
import type { FactsError, ImageFacts } from '../facts/facts.ts';
import type { FullPlatform } from '../../names/platform.ts';
import { compact, mapEntryBytes, objectBytes, textBytes } from './size.ts';

interface Details {
  readonly mediaType: string | undefined;
  readonly platforms: readonly FullPlatform[];
  readonly credentialSource: CredentialSourceName;
  readonly endpoint: string;
  /** Only `not-an-image`, which is knowledge rather than a failure. */
  readonly error: FactsError | undefined;
}

/** The bytes of a registry host in memory. */
export interface HostShare {
  readonly host: string;
  bytes: number;
  entries: number;
}

export interface SharedDetails {
  readonly value: Details;
  readonly text: string;
  readonly bytes: number;
  /** The host of the first entry; the bytes count for it. */
  readonly share: HostShare;
  uses: number;
  /** Uses by entries that are protected from scans. */
  protectedUses: number;
}

export class SharedDetailsTable {
  readonly #byText = new Map<string, SharedDetails>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  take(facts: ImageFacts, share: HostShare): SharedDetails {
    const text = compact(detailsText(facts));
    let details = this.#byText.get(text);
    if (!details) {
      const value = detailsOf(facts);
      const bytes = detailsBytes(value, text);
      details = { value, text, bytes, share, uses: 0, protectedUses: 0 };
      this.#byText.set(text, details);
      this.#bytes += bytes;
      share.bytes += bytes;
    }
    details.uses += 1;
    return details;
  }

  release(details: SharedDetails): void {
    details.uses -= 1;
    if (details.uses > 0) return;
    this.#byText.delete(details.text);
    this.#bytes -= details.bytes;
    details.share.bytes -= details.bytes;
  }
}

function detailsOf(facts: ImageFacts): Details {
  return {
    mediaType: facts.mediaType === undefined ? undefined : compact(facts.mediaType),
    platforms: facts.platforms.map(
      ({ os, architecture, variant, osVersion, written, unnamed, needsFeatures }) => ({
        os: compact(os),
        architecture: compact(architecture),
        ...(variant !== undefined && { variant: compact(variant) }),
        ...(osVersion !== undefined && { osVersion: compact(osVersion) }),
        ...(written !== undefined && { written: compact(written) }),
        ...(unnamed && { unnamed }),
        ...(needsFeatures && { needsFeatures }),
      }),
    ),
    credentialSource: facts.credentialSource,
    endpoint: compact(facts.endpoint),
    error: facts.error && { code: facts.error.code, message: compact(facts.error.message) },
  };
}

/** No platform, media type or host has it. */
const separator = '\0';

/** A text that is equal for facts with equal details only. */
function detailsText(facts: ImageFacts): string {
  const { mediaType = '', platforms, credentialSource, endpoint, error } = facts;
  let text = mediaType + separator + credentialSource + separator + endpoint;
  for (const platform of platforms) {
    const { os, architecture, variant = '', osVersion = '', written = '', unnamed, needsFeatures } = platform;
    text += separator + os + separator + architecture + separator + variant;
    text += separator + osVersion + separator + written + (unnamed ? separator : '');
    // No system has an empty name, so their number is certain.
    if (needsFeatures) text += separator + separator;
  }
  return error ? text + separator + error.code + separator + JSON.stringify(error.message) : text;
}

function detailsBytes({ mediaType, endpoint, error, platforms }: Details, text: string): number {
  let bytes = textBytes(text) + objectBytes(4) + mapEntryBytes;
  bytes += objectBytes(5) + textBytes(mediaType) + textBytes(endpoint);
  if (error) bytes += objectBytes(2) + textBytes(error.message);
  for (const { os, architecture, variant, osVersion, written } of platforms) {
    bytes += objectBytes(4) + textBytes(os) + textBytes(architecture) + textBytes(variant);
    if (osVersion !== undefined || written !== undefined)
      bytes += objectBytes(2) + textBytes(osVersion) + textBytes(written);
  }
  return bytes;
}
