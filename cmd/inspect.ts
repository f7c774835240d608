/**
 * `archwright inspect`: what an agent on this machine would say of images. It uses the agent's own parts, from the
 * sources of credentials to the results, so that what it prints is what a pod would get here.
 */
import { createFactsApi } from '../daemon/api/facts.ts';
import type { FactsRequest } from '../daemon/api/facts-request.ts';
import { isServiceAccountName, type ServiceAccountName } from '../src/credentials/service-account.ts';
import type { ImageFacts } from '../src/images/facts/facts.ts';
import { systemClock } from '../src/async/clock.ts';
import { readPullSecrets } from './inspect/pull-secret-files.ts';
import { describeResults } from './inspect/results.ts';
import { describeAttempts, describeSources, tracing, type NamedSource } from './inspect/trace.ts';
import { openInspection } from './wiring/inspection.ts';
import { openMemory } from './wiring/memory.ts';
import { openCliContext, outputOf, untilStopped } from './program/cli-context.ts';
import { exitCodes, UsageError, type Invocation, type Subcommand } from './program/subcommand.ts';

export const subcommand: Subcommand = {
  usage: '[FLAGS] IMAGE…',
  description:
    'Says for each image which platforms it has, and where and with which credential that was learned. It looks for ' +
    'credentials where an agent does: `--pull-secret`, `--creds-dir`, docker configurations (those of the node ' +
    'below `--host-root` where that is given, else also your own docker login). Exit code: 0 where every image was ' +
    'found, 1 where some were not, 2 for wrong usage.',
  settings: 'inspect',
  flags: {
    output: {
      value: 'table|json',
      short: 'o',
      help: 'How to write; `json` as the API of the agent. Default: table.',
    },
    'pull-secret': {
      value: 'FILE',
      help:
        'Secrets that are presented first, as those of a pod: a manifest in YAML or JSON, or a docker `config.json` ' +
        'or `.dockercfg`; `-` is standard input. May be given several times.',
    },
    'service-account': {
      value: 'NAMESPACE/NAME',
      help:
        'Asks as for a pod of this service account; with `--service-account-tokens` credential provider plugins get a token ' +
        'of it.',
    },
    verbose: {
      short: 'v',
      help: 'Tells each source of credentials, each request and its answer; with `json` on standard error.',
    },
  },
  run: (invocation) => untilStopped(invocation.stop, () => run(invocation)),
};

/** Images asked for at the same time: more than a pod has, fewer than registries take for an attack. */
const concurrentImages = 16;

async function run(invocation: Invocation): Promise<number> {
  const { positionals: images, flags, io, stop } = invocation;
  if (images.length === 0) throw new UsageError('inspect', 'name at least one image');
  const output = outputOf('inspect', invocation, ['table', 'json']);
  const { configuration, dockerConfigs, log, metrics } = await openCliContext(invocation);
  const secretFiles = flags.get('pull-secret') ?? [];
  const pullSecrets = await readPullSecrets(secretFiles, io.stdin);
  const serviceAccount = serviceAccountIn(flags.get('service-account')?.at(-1));

  const inspection = await openInspection({
    configuration: () => configuration,
    dockerConfigs,
    env: io.env,
    log,
  });
  const inspector = tracing(inspection.inspector);
  const memory = await openMemory({ configuration: () => configuration, inspector, log, metrics });
  try {
    const api = createFactsApi({ memory, clock: systemClock, log, concurrentImages, maxKnownBytes: 0 });
    const request = requestFor(images, pullSecrets, configuration.inspectTimeout);
    const results = await api.answer({ ...request, ...(serviceAccount && { serviceAccount }) }, stop);
    io.out(output === 'json' ? `${JSON.stringify({ results }, undefined, 2)}\n` : describeResults(results));
    if (flags.has('verbose')) {
      const sources: NamedSource[] = inspection.sources.map(({ source, place }) => ({
        name: source.name,
        place,
        problems: source.problems(),
      }));
      if (secretFiles.length > 0) {
        const [name, place] = [pullSecrets.name, secretFiles.join(', ')];
        sources.unshift({ name, place, problems: pullSecrets.problems() });
      }
      const text = describeSources(sources) + describeAttempts(results, inspector);
      if (output === 'json') io.err(text);
      else io.out(`\n${text}`);
    }
    return results.every(isFound) ? exitCodes.success : exitCodes.failure;
  } finally {
    await memory.close();
    await inspection.close();
  }
}

/** Memory gives each image its own time limit; the request's is there for all of them, one batch after the other. */
function requestFor(
  images: readonly string[],
  pullSecrets: FactsRequest['pullSecrets'],
  inspectTimeoutMs: number,
): FactsRequest {
  const batches = Math.ceil(images.length / concurrentImages);
  return {
    images: images.map((image) => ({ image, pullPolicy: 'Always' })),
    deadlineMs: (batches + 1) * inspectTimeoutMs,
    pullSecrets,
  };
}

/** @throws UsageError where a cluster can have no such service account */
function serviceAccountIn(text: string | undefined): ServiceAccountName | undefined {
  if (text === undefined) return undefined;
  const slash = text.indexOf('/');
  const account = { namespace: text.slice(0, Math.max(0, slash)), name: text.slice(slash + 1) };
  if (isServiceAccountName(account)) return account;
  throw new UsageError('inspect', `--service-account takes NAMESPACE/NAME, which ${text} is not`);
}

function isFound({ error }: ImageFacts): boolean {
  return error === undefined;
}
