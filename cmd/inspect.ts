/**
 * `archwright inspect`: what an agent on this machine would find out about images. It uses the agent's own code, from the
 * credential sources to the results.
 */
import { answerFacts } from '../daemon/api/facts.ts';
import type { FactsRequest } from '../daemon/api/facts-request.ts';
import { isServiceAccountName, type ServiceAccountName } from '../src/credentials/credential.ts';
import type { Configuration } from '../src/policy/configuration/configuration.ts';
import { systemClock } from '../src/async/clock.ts';
import { readPullSecrets } from './inspect/pull-secret-files.ts';
import {
  describeAttempts,
  describeResults,
  describeSources,
  tracing,
  type NamedSource,
} from './inspect/output.ts';
import { openInspection } from './wiring/inspection.ts';
import { openMemory } from './wiring/image-facts.ts';
import { openCliContext, untilStopped } from './program/context.ts';
import { choiceOf, exitCodes, UsageError, type Invocation, type Subcommand } from './program/subcommand.ts';

export const subcommand: Subcommand = {
  usage: '[FLAGS] IMAGE…',
  description:
    'Shows the platforms of each image, the endpoint that had it and the credential that was used. Credentials come from ' +
    "the same sources as an agent's: `--pull-secret`, `--creds-dir`, docker configurations (with `--host-root` those of the " +
    'node, otherwise your own docker login too). Exit code: 0 if every image was found, 1 if some were not, 2 for wrong usage.',
  settings: 'inspect',
  flags: {
    output: {
      value: 'table|json',
      short: 'o',
      help: 'Output format; `json` is the format of the agent API. Default: table.',
    },
    'pull-secret': {
      value: 'FILE',
      help:
        'Pull secrets, tried first: a manifest in YAML or JSON, or a docker `config.json` or `.dockercfg`; `-` is standard ' +
        'input. Can be repeated.',
    },
    'service-account': {
      value: 'NAMESPACE/NAME',
      help:
        'Inspects as for a pod of this service account. With `--service-account-tokens`, credential provider plugins get its ' +
        'token.',
    },
    verbose: {
      short: 'v',
      help: 'Shows each credential source, each request and its response; with `json` on standard error.',
    },
  },
  run: (invocation) => untilStopped(invocation.stop, () => run(invocation)),
};

/** Images inspected at a time: more than a pod has, few enough not to look like an attack. */
const concurrentImages = 16;

async function run(invocation: Invocation): Promise<number> {
  const { positionals: images, flags, io, stop } = invocation;
  if (images.length === 0) throw new UsageError('name at least one image');
  const output = choiceOf(invocation, 'output', ['table', 'json']);
  const { configuration, dockerConfigs, log, metrics } = await openCliContext(invocation);
  const secretFiles = flags.get('pull-secret') ?? [];
  const pullSecrets = await readPullSecrets(secretFiles, io.stdin);
  const serviceAccount = serviceAccountIn(flags.get('service-account')?.at(-1));

  await using opened = new AsyncDisposableStack();
  const current = (): Configuration => configuration;
  const inspection = await openInspection({ configuration: current, dockerConfigs, env: io.env, log });
  opened.defer(() => inspection.close());
  const inspector = tracing(inspection.inspector);
  const memory = await openMemory({ configuration: current, inspector, log, metrics });
  opened.defer(() => memory.close());
  const request = {
    ...requestFor(images, pullSecrets, configuration.inspectTimeout),
    ...(serviceAccount && { serviceAccount }),
  };
  const results = await answerFacts(request, stop, { memory, clock: systemClock, log });
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
  return results.every(({ error }) => error === undefined) ? exitCodes.success : exitCodes.failure;
}

/** Each image has its own time limit. The deadline covers all batches. */
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

/** @throws UsageError if no cluster can have such a service account */
function serviceAccountIn(text: string | undefined): ServiceAccountName | undefined {
  if (text === undefined) return undefined;
  const slash = text.indexOf('/');
  const account = { namespace: text.slice(0, Math.max(0, slash)), name: text.slice(slash + 1) };
  if (isServiceAccountName(account)) return account;
  throw new UsageError(`--service-account must be NAMESPACE/NAME, not ${text}`);
}
