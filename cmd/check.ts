/** `archwright check`: whether images in manifests have an architecture. For pipelines, without a cluster. */
import { systemClock } from '../src/async/clock.ts';
import { AllowList, parseAllowList } from './check/allow-list.ts';
import { lookUpImages } from './check/lookups.ts';
import { podsInFiles } from './check/pods.ts';
import { classes, judge } from './check/verdict.ts';
import { asJson, asJunit, asSarif, asTable, type Checked } from './check/write.ts';
import { readText } from './objects/documents.ts';
import { untilStopped } from './program/context.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import { architectures, choice, list } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { cacheFlags } from './wiring/cached-lookups.ts';

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
  const allowList = new AllowList(await allowEntries(invocation), systemClock.now());
  const pods = await podsInFiles(positionals, io.stdin, note);
  const images = new Set(pods.flatMap(({ places }) => places.map(({ image }) => image)));
  const facts = await lookUpImages(invocation, images, architectures);
  const now = systemClock.now();
  const results = pods.flatMap((pod) =>
    judge(pod, architectures, (image) => facts.get(image), allowList, now),
  );
  const checked: Checked = { architectures, results, allowList: allowList.states() };
  noteOfAllowList(checked, note);
  if (results.length === 0) note('the input contains no image');
  if (output === 'table') io.out(asTable(checked));
  else if (output === 'json') io.out(asJson(checked));
  else io.out(output === 'junit' ? asJunit(checked) : asSarif(checked, process.cwd()));
  const found = new Set(results.map(({ verdict }) => classes[verdict]));
  if (found.has('finding')) return exitCodes.failure;
  return found.has('unknown') ? exitCodes.unanswered : exitCodes.success;
}

async function allowEntries({ flags, io }: Call): Promise<ReturnType<typeof parseAllowList>> {
  const entries: ReturnType<typeof parseAllowList>[number][] = [];
  for (const path of flags.allowList) {
    const { text, file } = await readText(path, io.stdin);
    entries.push(...parseAllowList(text, file));
  }
  return entries;
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
