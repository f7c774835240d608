/** `archwright check`: whether images in manifests have an architecture. For pipelines, without a cluster. */
import { systemClock } from '../src/async/clock.ts';
import { concurrently } from '../src/async/concurrently.ts';
import { failedFacts, type ImageFacts } from '../src/images/facts/facts.ts';
import { InvalidReference } from '../src/images/references/reference.ts';
import { AllowList, parseAllowList } from './check/allow-list.ts';
import { podsInFiles } from './check/pods.ts';
import { classes, checkPod } from './check/verdict.ts';
import { asJunit, asSarif, asTable, documentOf, type Checked } from './check/write.ts';
import { readText } from './objects/documents.ts';
import { openCliContext, untilStopped } from './program/context.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import { architectures, choice, list } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { print } from './program/table.ts';
import { createProgress } from './program/terminal.ts';
import { cacheFlags, openCachedLookups } from './wiring/image-facts.ts';

const flags = {
  require: architectures('Architectures that every image must have. Can be repeated.', 'arm64', {
    short: 'r',
  }),
  allowList: list('FILE', 'Images that may lack an architecture, in TOML. Can be repeated.'),
  output: choice(['table', 'json', 'junit', 'sarif'], 'Output format.', { short: 'o' }),
  ...cacheFlags,
};

type Call = Invocation<typeof flags>;

export const subcommand: Subcommand<typeof flags> = {
  usage: '[FLAGS] FILE|DIRECTORY|-…',
  description:
    'Checks whether the images in manifests have an architecture: `helm template … | archwright check ' +
    '--require arm64 -`. Reads YAML, JSON, files and directories; needs no cluster. Uses the same ' +
    'credentials as `inspect`, and caches answers between runs. Exit code: 0 if all images have it, 1 if ' +
    'an image lacks it or does not exist, 2 for wrong usage or input, 3 if a registry did not answer.',
  settings: 'inspect',
  flags,
  run: untilStopped(run),
};

async function run(invocation: Call): Promise<number> {
  const { io, flags, positionals, say } = invocation;
  const { output, require: architectures } = flags;
  if (positionals.length === 0) throw new UsageError('name files or directories, or - for standard input');
  const note = (message: string): void => say(message, 'note');
  const entries = await Array.fromAsync(flags.allowList, async (path) => {
    const { text, file } = await readText(path, io.stdin);
    return parseAllowList(text, file);
  });
  const allowList = new AllowList(entries.flat(), systemClock.now());
  const pods = await podsInFiles(positionals, io.stdin, note);
  const images = new Set(pods.flatMap(({ places }) => places.map(({ image }) => image)));
  const facts = await lookUpImages(invocation, images, architectures);
  const now = systemClock.now();
  const results = pods.flatMap((pod) =>
    checkPod(pod, architectures, (image) => facts.get(image), allowList, now),
  );
  const checked: Checked = { architectures, results, allowList: allowList.states() };
  noteOfAllowList(checked, note);
  if (results.length === 0) note('the input contains no image');
  if (output === 'junit') io.out(asJunit(checked));
  else if (output === 'sarif') io.out(asSarif(checked, process.cwd()));
  else print(invocation, documentOf(checked), asTable(checked));
  const found = new Set(results.map(({ verdict }) => classes[verdict]));
  if (found.has('finding')) return exitCodes.failure;
  return found.has('unknown') ? exitCodes.unanswered : exitCodes.success;
}

function noteOfAllowList({ allowList, architectures }: Checked, note: (message: string) => void): void {
  const names = architectures.join(', ');
  for (const [{ image, line, expires = '' }, state] of allowList) {
    const entry = `allow-list, line ${line}, ${JSON.stringify(image)}`;
    if (state === 'unused') note(`${entry}: matches no image`);
    if (state === 'not-needed') note(`${entry}: is not needed, because its images have ${names}`);
    if (state === 'expired') note(`${entry}: expired after ${expires}`);
  }
}

/** No pod: nothing depends on a namespace or a service account. */
const nobody = { namespace: '', serviceAccount: undefined };

/** Few enough not to look like an attack, as in `inspect`. */
const concurrentImages = 16;

/**
 * Looks up each image once, from the cache of earlier runs or at its registry.
 * @returns facts by image as written; a failure is an answer
 */
async function lookUpImages(
  invocation: Call,
  images: ReadonlySet<string>,
  architectures: readonly string[],
): Promise<ReadonlyMap<string, ImageFacts>> {
  await using opened = new AsyncDisposableStack();
  const { cache, requestOf } = await openCachedLookups(invocation, await openCliContext(invocation), opened);
  const progress = createProgress(invocation.io);
  opened.defer(() => progress.end());

  async function lookup(image: string): Promise<ImageFacts> {
    const request = requestOf(image, 'IfNotPresent', nobody);
    const known = cache.peek(request);
    // The tag may have been pushed again after this command reported a missing architecture.
    const isToConfirm =
      known && request.reference.digest === undefined && lacksArchitecture(known, architectures);
    if (known && !isToConfirm) return known;
    const options = { signal: invocation.stop };
    return await cache.get(isToConfirm ? { ...request, maxAgeMs: 0 } : request, options);
  }

  const facts = new Map<string, ImageFacts>();
  await concurrently([...images], concurrentImages, async (image) => {
    try {
      facts.set(image, await lookup(image));
    } catch (error) {
      if (!(error instanceof InvalidReference)) throw error;
      const failure = { code: 'invalid-reference', message: error.message } as const;
      facts.set(image, failedFacts(image, failure, systemClock.now()));
    }
    progress.show(`${facts.size} of ${images.size} images`);
  });
  return facts;
}

function lacksArchitecture(
  { platforms, source, error }: ImageFacts,
  architectures: readonly string[],
): boolean {
  if (source === 'override' || error !== undefined) return false;
  return !architectures.every((name) => platforms.some(({ architecture }) => architecture === name));
}
