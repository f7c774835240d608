/** The results of `inspect` as text. */
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { formatPlatform } from '../../src/images/platforms/platform.ts';
import { printable } from '../../src/names/printable.ts';
import { nothing, table } from '../program/table.ts';

const mediaKinds: ReadonlyMap<string, string> = new Map([
  ['application/vnd.oci.image.index.v1+json', 'OCI index'],
  ['application/vnd.oci.image.manifest.v1+json', 'OCI image'],
  ['application/vnd.docker.distribution.manifest.list.v2+json', 'Docker list'],
  ['application/vnd.docker.distribution.manifest.v2+json', 'Docker image'],
]);

/** Enough to tell digests apart, as `docker images` shows them. */
const digestLength = 12;
const maxMessageBytes = 1024;
const maxCellBytes = 256;

/**
 * A table of the results, and below it the errors.
 * @param results in the order of the arguments
 */
export function describeResults(results: readonly ImageFacts[]): string {
  const header = ['IMAGE', 'KIND', 'DIGEST', 'SOURCE', 'CREDENTIAL', 'ENDPOINT', 'PLATFORMS'];
  const failures = results.flatMap(({ image, error }) =>
    error ? [`${cell(image)}: ${error.code}: ${printable(error.message, maxMessageBytes)}\n`] : [],
  );
  return table([header, ...results.map(rowOf)]) + (failures.length === 0 ? '' : `\n${failures.join('')}`);
}

function rowOf(facts: ImageFacts): readonly string[] {
  const { image, mediaType, digest, source, credentialSource, endpoint, platforms, error } = facts;
  const asked = source !== 'override' && endpoint !== '';
  return [
    cell(image),
    mediaType === undefined ? nothing : cell(mediaKinds.get(mediaType) ?? mediaType),
    digest === undefined ? nothing : shortDigest(digest),
    error ? nothing : source,
    asked && !error ? credentialSource : nothing,
    asked ? cell(endpoint) : nothing,
    error ? error.code : platforms.map(formatPlatform).join(' ') || 'any',
  ];
}

function shortDigest(digest: string): string {
  const colon = digest.indexOf(':');
  return digest.slice(colon + 1, colon + 1 + digestLength);
}

function cell(text: string): string {
  return printable(text, maxCellBytes) || nothing;
}
