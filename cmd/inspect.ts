/**
 * `archwright inspect`: what an agent on this machine finds out about images. In the container of a running
 * agent, that agent inspects them. Elsewhere this process runs the agent's own code, which is loaded only
 * then.
 */
import { askAgent, LocalInspectionError } from '../daemon/local/client.ts';
import { socketPathIn, type Inspected } from '../daemon/local/protocol.ts';
import { toAuths } from '../src/credentials/auths.ts';
import type { CredentialSource, ServiceAccountName } from '../src/credentials/credential.ts';
import type { FactsErrorCode, ImageFacts } from '../src/images/facts/facts.ts';
import { validReference } from '../src/images/references/reference.ts';
import { describeAttempts, describeResults, describeSources } from './inspect/output.ts';
import { openCliContext, untilStopped, type CliContext } from './program/context.ts';
import { serviceAccountIn } from './program/service-account.ts';
import { choiceOf, exitCodes, UsageError, type Invocation, type Subcommand } from './program/subcommand.ts';

export const subcommand: Subcommand = {
  usage: '[FLAGS] IMAGE…',
  description:
    'Shows the platforms of each image, the endpoint that answered and the credential that was used. In ' +
    'an agent’s container, the running agent inspects with its own credentials, unless `--local` or a ' +
    'setting is given. Otherwise credentials come from the same sources as those of an agent: ' +
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
    local: { help: 'Inspects in this process, even in an agent’s pod.' },
    verbose: {
      short: 'v',
      help: 'Shows each credential source, each request and its response; with `json` on standard error.',
    },
  },
  run: untilStopped(run),
};

interface Wanted {
  readonly images: readonly { readonly image: string; readonly pullPolicy: 'Always' }[];
  readonly serviceAccount?: ServiceAccountName;
}

async function run(invocation: Invocation): Promise<number> {
  try {
    return await inspect(invocation);
  } catch (error) {
    if (!(error instanceof LocalInspectionError)) throw error;
    invocation.io.err(`archwright inspect: ${error.message}; --local inspects without it\n`);
    return exitCodes.unanswered;
  }
}

async function inspect(invocation: Invocation): Promise<number> {
  const { positionals, flags, io, stop } = invocation;
  if (positionals.length === 0) throw new UsageError('name at least one image');
  const output = choiceOf(invocation, 'output', ['table', 'json']);
  const context = await openCliContext(invocation);
  const secretFiles = flags.get('pull-secret') ?? [];
  const pullSecrets =
    secretFiles.length === 0
      ? undefined
      : await (await import('./inspect/pull-secret-files.ts')).readPullSecrets(secretFiles, io.stdin);
  const serviceAccount = serviceAccountIn(flags, 'service-account');
  const wanted: Wanted = {
    images: positionals.map((image) => ({ image, pullPolicy: 'Always' })),
    ...(serviceAccount && { serviceAccount }),
  };
  const byAgent = await askRunningAgent(invocation, context, wanted, pullSecrets);
  const here = async (): Promise<Inspected> => {
    const { inspectHere } = await import('./inspect/inspect-images.ts');
    return await inspectHere(context, io.env, { ...wanted, ...(pullSecrets && { pullSecrets }) }, stop);
  };
  const { results, attempts, sources } = byAgent ?? (await here());
  io.out(output === 'json' ? `${JSON.stringify({ results }, undefined, 2)}\n` : describeResults(results));
  if (flags.has('verbose')) {
    const ofPod = pullSecrets && {
      name: pullSecrets.name,
      place: secretFiles.join(', '),
      problems: pullSecrets.problems(),
    };
    const by = byAgent ? 'Inspected by the running agent.\n' : '';
    const text =
      by + describeSources(ofPod ? [ofPod, ...sources] : sources) + describeAttempts(results, attempts);
    if (output === 'json') io.err(text);
    else io.out(`\n${text}`);
  }
  return codeOf(results);
}

/** @returns undefined if no agent runs here, or settings differ from its own */
async function askRunningAgent(
  { flags, sources, io, stop }: Invocation,
  { configuration: { stateDir } }: CliContext,
  wanted: Wanted,
  pullSecrets: CredentialSource | undefined,
): Promise<Inspected | undefined> {
  const { logLevel: _, ...others } = sources.flags;
  const hasSettings = Object.keys(others).length > 0 || sources.file !== io.env['ARCHWRIGHT_CONFIG'];
  if (flags.has('local') || hasSettings || stateDir === undefined) return undefined;
  const auths = pullSecrets && toAuths(await credentialsFor(wanted, pullSecrets), { withOrigin: true });
  // The agent gives each image the time that its settings allow.
  const deadlineMs = 30_000;
  return askAgent(socketPathIn(stateDir), { ...wanted, deadlineMs, ...(auths && { auths }) }, stop);
}

async function credentialsFor({ images }: Wanted, source: CredentialSource) {
  const repositories = images.flatMap(({ image }) => validReference(image)?.repository ?? []);
  return (await Promise.all(repositories.map((repository) => source.lookup(repository)))).flat();
}

/** A registry that does not answer leaves its image open, whatever the others said. */
function codeOf(results: readonly ImageFacts[]): number {
  const errors = results.flatMap(({ error }) => error ?? []);
  if (errors.some(({ code }) => unansweredCodes.has(code))) return exitCodes.unanswered;
  return errors.length === 0 ? exitCodes.success : exitCodes.failure;
}

const unansweredCodes: ReadonlySet<FactsErrorCode> = new Set(['rate-limited', 'unavailable', 'timeout']);
