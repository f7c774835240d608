/** `archwright inspect`: what an agent on this machine finds out about images, by the agent's own code. */
import { answerFacts } from '../daemon/api/facts.ts';
import { systemClock } from '../src/async/clock.ts';
import { describeSourceProblem } from '../src/credentials/problems.ts';
import type { CredentialSource } from '../src/credentials/credential.ts';
import { formatPlatform } from '../src/names/platform.ts';
import { printable } from '../src/names/printable.ts';
import { scrub } from '../src/telemetry/scrub.ts';
import { createPullSecretSource } from '../src/credentials/sources/pull-secrets.ts';
import type { FactsErrorCode, ImageFacts, ImageFactsSource } from '../src/images/facts/facts.ts';
import type { Attempt } from '../src/registry/manifest-lookup.ts';
import { readPullSecretFiles } from './objects/pull-secrets.ts';
import { close, openCliContext, untilStopped } from './program/context.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import { choice, list, objectName, toggle } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { cell, nothing, print, table, tableOf, type Column } from './program/table.ts';
import { openFactsCache } from './wiring/image-facts.ts';
import { openInspection } from './wiring/inspection.ts';

const flags = {
  output: choice(['table', 'json'], 'Output format; `json` has results as in the agent API.', { short: 'o' }),
  pullSecret: list(
    'FILE',
    'Pull secrets, tried first: YAML, JSON, docker `config.json` or `.dockercfg`; `-`: standard input. Can be repeated.',
  ),
  serviceAccount: objectName(
    'Inspects as for pods of this account; with `--service-account-tokens`, plugins get its token.',
  ),
  verbose: toggle(
    'Shows each credential source, each request and its response; with `json` on standard error.',
    { short: 'v' },
  ),
};

type Call = Invocation<typeof flags>;

export const subcommand: Subcommand<typeof flags> = {
  usage: '[FLAGS] IMAGE…',
  description:
    'Shows the platforms of each image, the endpoint that answered and the credential that was used. ' +
    'Credentials come from the same sources as those of an agent: ' +
    '`--pull-secret`, `--creds-dir`, docker configurations (with `--host-root` those of the node, ' +
    'otherwise also your own docker login). Exit code: 0 if every image was found, 1 if some were not, 2 ' +
    'for wrong usage, 3 if a registry did not answer.',
  settings: 'inspect',
  flags,
  run: untilStopped(run),
};

/** Images inspected at a time: more than a pod has, few enough not to look like an attack. */
const concurrentImages = 16;

async function run(invocation: Call): Promise<number> {
  const { positionals, flags, io } = invocation;
  if (positionals.length === 0) throw new UsageError('name at least one image');
  const { output, pullSecret: files, verbose } = flags;
  const ofPod = files.length === 0 ? undefined : await readPullSecretFiles(files, io.stdin);
  const { results, attempts, sources } = await inspect(invocation, ofPod);
  print(invocation, { results }, describeResults(results));
  if (verbose) {
    const all = [...(ofPod ? [{ source: ofPod, place: files.join(', ') }] : []), ...sources];
    const text = describeSources(all) + describeAttempts(results, attempts);
    if (output === 'json') io.err(text);
    else io.out(`\n${text}`);
  }
  return codeOf(results);
}

/** Looks up every image in its registry. Each image has its own time limit; the deadline covers all batches. */
async function inspect(invocation: Call, pullSecrets = createPullSecretSource([])) {
  const { positionals, flags, io, stop } = invocation;
  const context = await openCliContext(invocation);
  const { dockerConfigs, log, metrics } = context;
  const configuration = () => context.configuration;
  await using opened = new AsyncDisposableStack();
  const opening = openInspection({ configuration, dockerConfigs, env: io.env, log, stop });
  const inspection = opened.adopt(await opening, close);
  /** Attempts by image, in the order of completion. */
  const attempts = new Map(positionals.map((image) => [image, [] as Attempt[]]));
  const source: ImageFactsSource = {
    lookup: (request, options) => {
      const trace = (attempt: Attempt) => attempts.get(request.image)?.push(attempt);
      return inspection.source.lookup(request, { ...options, trace });
    },
  };
  const cache = opened.adopt(await openFactsCache({ configuration, source, log, metrics }), close);
  const batches = Math.ceil(positionals.length / concurrentImages);
  const request = {
    images: positionals.map((image) => ({ image, maxAgeMs: 0 })),
    pullSecrets,
    deadlineMs: (batches + 1) * configuration().inspectTimeout,
    ...(flags.serviceAccount && { serviceAccount: flags.serviceAccount }),
  };
  const { resolvesShortNames, sources } = inspection;
  const answers = answerFacts(request, stop, { cache, resolvesShortNames, clock: systemClock, log });
  return { results: await Promise.all(answers), attempts, sources };
}

/** One registry that does not answer makes the result incomplete, whatever the others say. */
function codeOf(results: readonly ImageFacts[]): number {
  const errors = results.flatMap(({ error }) => error ?? []);
  if (errors.some(({ code }) => unansweredCodes.has(code))) return exitCodes.unanswered;
  return errors.length === 0 ? exitCodes.success : exitCodes.failure;
}

const unansweredCodes: ReadonlySet<FactsErrorCode> = new Set(['rate-limited', 'unavailable', 'timeout']);

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
function describeResults(results: readonly ImageFacts[]): string {
  const failures = results.flatMap(({ image, error }) =>
    error ? [`${cell(image)}: ${error.code}: ${printable(error.message, maxTextBytes)}\n`] : [],
  );
  return tableOf(resultColumns, results) + (failures.length === 0 ? '' : `\n${failures.join('')}`);
}

const isFromRegistry = ({ source, endpoint }: ImageFacts): boolean =>
  source !== 'override' && endpoint !== '';

const resultColumns: readonly Column<ImageFacts>[] = [
  ['IMAGE', ({ image }) => cell(image)],
  ['KIND', ({ mediaType = '' }) => cell(mediaKinds.get(mediaType) ?? mediaType)],
  ['DIGEST', ({ digest }) => digest?.slice(digest.indexOf(':') + 1).slice(0, digestLength)],
  ['SOURCE', ({ source, error }) => (error ? nothing : source)],
  ['CREDENTIAL', (facts) => (isFromRegistry(facts) && !facts.error ? facts.credentialSource : nothing)],
  ['ENDPOINT', (facts) => (isFromRegistry(facts) ? cell(facts.endpoint) : nothing)],
  [
    'PLATFORMS',
    ({ platforms, error }) =>
      error ? error.code : [...new Set(platforms.map(formatPlatform))].join(' ') || 'any',
  ],
];

/** @param sources in the order of precedence, each with the places that it reads */
function describeSources(
  sources: readonly { readonly source: CredentialSource; readonly place: string }[],
): string {
  const lines = sources.flatMap(({ source, place }) => [
    `  ${source.name}: ${place}\n`,
    ...source
      .problems()
      .map((problem) => `    ignored: ${printable(describeSourceProblem(problem), maxProblemBytes)}\n`),
  ]);
  return scrub(`Credential sources, in order:\n${lines.join('')}`);
}

/** @param attempts by image */
function describeAttempts(
  results: readonly ImageFacts[],
  attempts: ReadonlyMap<string, readonly Attempt[]>,
): string {
  const images = [...new Map(results.map((facts) => [facts.image, facts])).values()];
  return scrub(images.map((facts) => describeImage(facts, attempts.get(facts.image) ?? [])).join(''));
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
