/** `archwright inspect`: what an agent on this machine finds out about images, by the agent's own code. */
import type { FactsErrorCode, ImageFacts } from '../src/images/facts/facts.ts';
import { inspectImages } from './inspect/inspect-images.ts';
import { describeAttempts, describeResults, describeSources } from './inspect/output.ts';
import { readPullSecrets } from './inspect/pull-secret-files.ts';
import { openCliContext, untilStopped } from './program/context.ts';
import { serviceAccountIn } from './program/service-account.ts';
import { choiceOf, exitCodes, UsageError, type Invocation, type Subcommand } from './program/subcommand.ts';

export const subcommand: Subcommand = {
  usage: '[FLAGS] IMAGE…',
  description:
    'Shows the platforms of each image, the endpoint that answered and the credential that was used. ' +
    'Credentials come from the same sources as those of an agent: ' +
    '`--pull-secret`, `--creds-dir`, docker configurations (with `--host-root` those of the node, ' +
    'otherwise also your own docker login). Exit code: 0 if every image was found, 1 if some were not, 2 ' +
    'for wrong usage, 3 if a registry did not answer.',
  settings: 'inspect',
  flags: {
    output: {
      value: 'table|json',
      short: 'o',
      help: 'Output format; `json` is the format of the agent API. Default: table.',
    },
    'pull-secret': {
      value: 'FILE',
      help: 'Pull secrets, tried first: YAML, JSON, docker `config.json` or `.dockercfg`; `-`: standard input. Can be repeated.',
    },
    'service-account': {
      value: 'NAMESPACE/NAME',
      help: 'Inspects as for pods of this account; with `--service-account-tokens`, plugins get its token.',
    },
    verbose: {
      short: 'v',
      help: 'Shows each credential source, each request and its response; with `json` on standard error.',
    },
  },
  run: untilStopped(run),
};

async function run(invocation: Invocation): Promise<number> {
  const { positionals, flags, io, stop } = invocation;
  if (positionals.length === 0) throw new UsageError('name at least one image');
  const output = choiceOf(invocation, 'output', ['table', 'json']);
  const context = await openCliContext(invocation);
  const secretFiles = flags.get('pull-secret') ?? [];
  const pullSecrets = secretFiles.length === 0 ? undefined : await readPullSecrets(secretFiles, io.stdin);
  const serviceAccount = serviceAccountIn(flags, 'service-account');
  const request = {
    images: positionals.map((image) => ({ image, maxAgeMs: 0 })),
    ...(serviceAccount && { serviceAccount }),
    ...(pullSecrets && { pullSecrets }),
  };
  const { results, attempts, sources } = await inspectImages(context, io.env, request, stop);
  io.out(output === 'json' ? `${JSON.stringify({ results }, undefined, 2)}\n` : describeResults(results));
  if (flags.has('verbose')) {
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
