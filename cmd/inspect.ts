/** `archwright inspect`: what an agent on this machine finds out about images, by the agent's own code. */
import type { FactsErrorCode, ImageFacts } from '../src/images/facts/facts.ts';
import { inspectImages } from './inspect/inspect-images.ts';
import { describeAttempts, describeResults, describeSources } from './inspect/output.ts';
import { readPullSecrets } from './inspect/pull-secret-files.ts';
import { openCliContext, untilStopped } from './program/context.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import { choice, list, objectName, toggle } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { jsonText } from './program/table.ts';

const flags = {
  output: choice(['table', 'json'], 'Output format; `json` is the format of the agent API.', { short: 'o' }),
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

async function run(invocation: Call): Promise<number> {
  const { positionals, flags, io, stop } = invocation;
  if (positionals.length === 0) throw new UsageError('name at least one image');
  const { output, pullSecret: secretFiles, serviceAccount, verbose } = flags;
  const context = await openCliContext(invocation);
  const pullSecrets = secretFiles.length === 0 ? undefined : await readPullSecrets(secretFiles, io.stdin);
  const request = {
    images: positionals.map((image) => ({ image, maxAgeMs: 0 })),
    ...(serviceAccount && { serviceAccount }),
    ...(pullSecrets && { pullSecrets }),
  };
  const { results, attempts, sources } = await inspectImages(context, io.env, request, stop);
  io.out(output === 'json' ? jsonText({ results }) : describeResults(results));
  if (verbose) {
    const ofPod = pullSecrets && {
      name: pullSecrets.name,
      place: secretFiles.join(', '),
      problems: pullSecrets.problems(),
    };
    const text = describeSources(ofPod ? [ofPod, ...sources] : sources) + describeAttempts(results, attempts);
    if (output === 'json') io.err(text);
    else io.out(`\n${text}`);
  }
  return codeOf(results);
}

/** A registry that does not answer leaves its image open, whatever the others said. */
function codeOf(results: readonly ImageFacts[]): number {
  const errors = results.flatMap(({ error }) => error ?? []);
  if (errors.some(({ code }) => unansweredCodes.has(code))) return exitCodes.unanswered;
  return errors.length === 0 ? exitCodes.success : exitCodes.failure;
}

const unansweredCodes: ReadonlySet<FactsErrorCode> = new Set(['rate-limited', 'unavailable', 'timeout']);
