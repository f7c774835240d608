/** `--verbose`: where credentials were looked for, and each request with what it was answered. Never a secret. */
import type { SourceProblem } from '../../src/credentials/credential.ts';
import type { ImageFacts, ImageFactsSource } from '../../src/images/facts/facts.ts';
import { printable } from '../../src/names/printable.ts';
import type { Attempt } from '../../src/registry/lookup.ts';
import { scrub } from '../../src/telemetry/scrub.ts';
import { table } from '../program/table.ts';

/** A source of credentials for people. */
export interface NamedSource {
  readonly name: string;
  readonly place: string;
  readonly problems: readonly SourceProblem[];
}

/** An inspector that notes what it was asked and answered. */
export interface TracingInspector extends ImageFactsSource {
  /** The requests for an image, in the order in which they ended. */
  attempts(image: string): readonly Attempt[];
}

const maxUrlBytes = 1024;
const maxProblemBytes = 512;

/** Notes the requests of an inspector by image. */
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

/** The sources in the order in which they are tried, each with what is wrong with it. */
export function describeSources(sources: readonly NamedSource[]): string {
  const lines = sources.flatMap(({ name, place, problems }) => [
    `  ${name}: ${place}\n`,
    ...problems.map(
      ({ origin, message }) => `    left out: ${printable(withOrigin(origin, message), maxProblemBytes)}\n`,
    ),
  ]);
  return scrub(`Credentials are looked for in this order:\n${lines.join('')}`);
}

/** The requests that were made for each image. */
export function describeAttempts(results: readonly ImageFacts[], trace: TracingInspector): string {
  const images = [...new Map(results.map((facts) => [facts.image, facts])).values()];
  return scrub(images.map((facts) => describeImage(facts, trace.attempts(facts.image))).join(''));
}

function describeImage({ image, source }: ImageFacts, attempts: readonly Attempt[]): string {
  const title = `\n${printable(image, maxUrlBytes)}\n`;
  if (attempts.length > 0) return title + table(attempts.map(rowOf), '  ');
  return `${title}  nothing was asked${source === 'override' ? ': imageOverrides has the answer' : ''}\n`;
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
    printable(answer.join(' ') || 'no answer', maxProblemBytes),
    `${Math.round(durationMs)} ms`,
  ];
}

/** Most messages begin with the file they are about. */
function withOrigin(origin: string, message: string): string {
  return message.startsWith(origin) ? message : `${origin}: ${message}`;
}
