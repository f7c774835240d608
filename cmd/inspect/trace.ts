/** `--verbose`: the credential sources, and each request with its response. Never a secret. */
import type { SourceProblem } from '../../src/credentials/credential.ts';
import type { ImageFacts, ImageFactsSource } from '../../src/images/facts/facts.ts';
import { printable } from '../../src/names/printable.ts';
import type { Attempt } from '../../src/registry/manifest-lookup.ts';
import { scrub } from '../../src/telemetry/scrub.ts';
import { table } from '../program/table.ts';

/** A credential source as it is shown. */
export interface NamedSource {
  readonly name: string;
  readonly place: string;
  readonly problems: readonly SourceProblem[];
}

/** An inspector that records its requests. */
export interface TracingInspector extends ImageFactsSource {
  /** The requests for an image, in the order of completion. */
  attempts(image: string): readonly Attempt[];
}

const maxUrlBytes = 1024;
const maxProblemBytes = 512;

/** Records the requests of an inspector by image. */
export function tracing(inspector: ImageFactsSource): TracingInspector {
  const noted = new Map<string, Attempt[]>();
  return {
    lookup: (question, options) => {
      const attempts = noted.get(question.image) ?? [];
      noted.set(question.image, attempts);
      return inspector.lookup(question, { ...options, trace: (attempt) => attempts.push(attempt) });
    },
    attempts: (image) => noted.get(image) ?? [],
  };
}

/** The sources in the order of precedence, with their problems. */
export function describeSources(sources: readonly NamedSource[]): string {
  const lines = sources.flatMap(({ name, place, problems }) => [
    `  ${name}: ${place}\n`,
    ...problems.map(
      ({ origin, message }) => `    ignored: ${printable(withOrigin(origin, message), maxProblemBytes)}\n`,
    ),
  ]);
  return scrub(`Credential sources, in order:\n${lines.join('')}`);
}

/** The requests for each image. */
export function describeAttempts(results: readonly ImageFacts[], trace: TracingInspector): string {
  const images = [...new Map(results.map((facts) => [facts.image, facts])).values()];
  return scrub(images.map((facts) => describeImage(facts, trace.attempts(facts.image))).join(''));
}

function describeImage({ image, source }: ImageFacts, attempts: readonly Attempt[]): string {
  const title = `\n${printable(image, maxUrlBytes)}\n`;
  if (attempts.length > 0) return title + table(attempts.map(rowOf), '  ');
  return `${title}  no request${source === 'override' ? ': imageOverrides applies' : ''}\n`;
}

function rowOf({
  method,
  purpose,
  url,
  credential,
  status,
  problem,
  durationMs,
}: Attempt): readonly string[] {
  const answer = [
    ...(status === undefined ? [] : [String(status)]),
    ...(problem === undefined ? [] : [problem]),
  ];
  return [
    method,
    purpose,
    printable(url, maxUrlBytes),
    printable(credential, maxUrlBytes),
    printable(answer.join(' ') || 'no response', maxProblemBytes),
    `${Math.round(durationMs)} ms`,
  ];
}

/** Most messages already begin with the file. */
function withOrigin(origin: string, message: string): string {
  return message.startsWith(origin) ? message : `${origin}: ${message}`;
}
