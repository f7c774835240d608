/** The results of `inspect` as text, `--verbose` with credential sources and requests. Never a secret. */
import { describeProblem } from '../../src/credentials/problems.ts';
import type { ImageFacts } from '../../src/images/facts/facts.ts';
import { formatPlatform } from '../../src/names/platform.ts';
import { printable } from '../../src/names/printable.ts';
import type { Attempt } from '../../src/registry/manifest-lookup.ts';
import { scrub } from '../../src/telemetry/scrub.ts';
import { cell, nothing, table } from '../program/table.ts';
import type { CredentialSource } from '../../src/credentials/credential.ts';

const maxTextBytes = 1024;
const maxProblemBytes = 512;

const mediaKinds: ReadonlyMap<string, string> = new Map([
  ['application/vnd.oci.image.index.v1+json', 'OCI index'],
  ['application/vnd.oci.image.manifest.v1+json', 'OCI image'],
  ['application/vnd.docker.distribution.manifest.list.v2+json', 'Docker list'],
  ['application/vnd.docker.distribution.manifest.v2+json', 'Docker image'],
]);

/** Enough to tell digests apart, as `docker images` shows them. */
const digestLength = 12;

/** A table of the results, and below it the errors. @param results in the order of the arguments */
export function describeResults(results: readonly ImageFacts[]): string {
  const header = ['IMAGE', 'KIND', 'DIGEST', 'SOURCE', 'CREDENTIAL', 'ENDPOINT', 'PLATFORMS'];
  const failures = results.flatMap(({ image, error }) =>
    error ? [`${cell(image)}: ${error.code}: ${printable(error.message, maxTextBytes)}\n`] : [],
  );
  return table([header, ...results.map(resultRow)]) + (failures.length === 0 ? '' : `\n${failures.join('')}`);
}

function resultRow(facts: ImageFacts): readonly string[] {
  const { image, mediaType, digest, source, credentialSource, endpoint, platforms, error } = facts;
  const isFromRegistry = source !== 'override' && endpoint !== '';
  return [
    cell(image),
    mediaType === undefined ? nothing : cell(mediaKinds.get(mediaType) ?? mediaType),
    digest?.slice(digest.indexOf(':') + 1).slice(0, digestLength) ?? nothing,
    error ? nothing : source,
    isFromRegistry && !error ? credentialSource : nothing,
    isFromRegistry ? cell(endpoint) : nothing,
    error ? error.code : [...new Set(platforms.map(formatPlatform))].join(' ') || 'any',
  ];
}

/** @param sources in the order of precedence, each with the places that it reads */
export function describeSources(
  sources: readonly { readonly source: CredentialSource; readonly place: string }[],
): string {
  const lines = sources.flatMap(({ source, place }) => [
    `  ${source.name}: ${place}\n`,
    ...source
      .problems()
      .map((problem) => `    ignored: ${printable(describeProblem(problem), maxProblemBytes)}\n`),
  ]);
  return scrub(`Credential sources, in order:\n${lines.join('')}`);
}

/** @param attempts by image */
export function describeAttempts(
  results: readonly ImageFacts[],
  attempts: Readonly<Record<string, readonly Attempt[]>>,
): string {
  const images = [...new Map(results.map((facts) => [facts.image, facts])).values()];
  return scrub(images.map((facts) => describeImage(facts, attempts[facts.image] ?? [])).join(''));
}

function describeImage({ image, source, error }: ImageFacts, attempts: readonly Attempt[]): string {
  const title = `\n${printable(image, maxTextBytes)}\n`;
  if (attempts.length > 0) return title + table(attempts.map(attemptRow), '  ');
  return `${title}  no request${source === 'override' && !error ? ': imageOverrides applies' : ''}\n`;
}

function attemptRow(attempt: Attempt): readonly string[] {
  const { method, purpose, url, credential, status, problem, durationMs } = attempt;
  const answer = [status, problem].filter((part) => part !== undefined);
  return [
    method,
    purpose,
    printable(url, maxTextBytes),
    printable(credential, maxTextBytes),
    printable(answer.join(' ') || 'no response', maxProblemBytes),
    `${Math.round(durationMs)} ms`,
  ];
}
