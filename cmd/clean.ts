/** `archwright clean`: removes everything that archwright added to a cluster. */
import { leaderWrites } from '../src/kube/api/fenced.ts';
import { clean, cleanOtherProgram, otherPrograms } from '../src/clean/clean.ts';
import type { CleanReport } from '../src/clean/report.ts';
import { createRateLimiter } from '../src/async/rate-limiter.ts';
import { systemClock } from '../src/async/clock.ts';
import { scrub } from '../src/telemetry/scrub.ts';
import { ignoring, KubeError } from '../src/kube/api/errors.ts';
import { requireCluster, type Kubernetes } from './wiring/kubernetes.ts';
import { findNamespace } from './wiring/own-namespace.ts';
import { listReleases } from './wiring/release.ts';
import { openCliContext, openReleaseContext, type CliContext } from './program/context.ts';
import { stoppedCode } from './program/signals.ts';
import { exitCodes, UsageError } from './program/exit.ts';
import { choice, optionalChoice, toggle } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { nothing, table } from './program/table.ts';

const flags = {
  dryRun: toggle('Shows what would be changed, deleted or restarted.'),
  restartPods: toggle(
    'At the end, restarts Deployments and StatefulSets whose pods have archwright’s tolerations, as `kubectl rollout restart` does.',
  ),
  program: optionalChoice(
    Object.keys(otherPrograms),
    'Removes the gates of `multiarch-tuning-operator` or the taints of `archaware-controller`, after you have removed that program.',
  ),
  output: choice(['table', 'json'], 'Output format.', { short: 'o' }),
};

type Call = Invocation<typeof flags>;

export const subcommand: Subcommand<typeof flags> = {
  usage: '[FLAGS]',
  description:
    'Removes everything that archwright added to a cluster, and nothing else: the webhook configuration, ' +
    'the scheduling gate of every pod, taints, then the objects that the controller created. ' +
    'Runs in a pod or with a kubeconfig, with or without a running controller, any number of times. Exit ' +
    'code: 0 if nothing is left, 1 if something could not be removed, 2 for wrong usage, 3 if the ' +
    'cluster does not answer.',
  settings: 'clean',
  flags,
  run,
};

async function run(invocation: Call): Promise<number> {
  const { io, stop } = invocation;
  const { dryRun, restartPods, output } = invocation.flags;
  const other = otherProgramOf(invocation);
  const own = await openCliContext(invocation);
  await using opened = new AsyncDisposableStack();
  const kubernetes = await requireCluster(own.configuration, invocation, opened);
  const { client, access } = kubernetes;
  const progress = (line: string): void => io.err(scrub(`archwright clean: ${line}\n`));
  const found = await installationIn(invocation, own, kubernetes).catch((error: unknown) => {
    if (!(error instanceof KubeError) || stop.aborted) throw error;
    progress(error.message);
  });
  if (!found) return exitCodes.unanswered;
  const { configuration, namespace } = found;
  progress(`${access.description}, namespace ${namespace}${dryRun ? ', dry run' : ''}`);
  try {
    const options = {
      client,
      limiter: createRateLimiter({ ...leaderWrites, clock: systemClock }),
      namespace,
      configuration,
      dryRun,
      restartPods,
      progress,
      signal: stop,
      clock: systemClock,
    };
    const report = await (other ? cleanOtherProgram(options, other) : clean(options));
    io.out(output === 'json' ? `${JSON.stringify(report, undefined, 2)}\n` : describe(report));
    return report.complete ? exitCodes.success : exitCodes.failure;
  } catch (error) {
    if (!stop.aborted) throw error;
    progress('stopped; run it again to continue');
    return stoppedCode(stop);
  }
}

/** @throws KubeError, UsageError */
async function installationIn(invocation: Invocation, own: CliContext, kubernetes: Kubernetes) {
  const { configuration } = await settingsIn(invocation, own, kubernetes);
  const { namespace = await findNamespace(kubernetes, configuration, invocation.stop) } = configuration;
  return { configuration, namespace };
}

/** A release's settings name what the controller created. A pod of archwright has them in a file. */
async function settingsIn(
  invocation: Invocation,
  own: CliContext,
  { client, podNamespace }: Kubernetes,
): Promise<CliContext> {
  if (podNamespace !== undefined) return own;
  const reading = listReleases(client, own.configuration.namespace, invocation.stop);
  const [release, ...more] = (await ignoring('forbidden', reading)) ?? [];
  if (release === undefined) return own;
  if (more.length === 0) return openReleaseContext(invocation, own, release);
  const list = [release, ...more].map(({ namespace, name }) => `${namespace}/${name}`).join(', ');
  throw new UsageError(
    `archwright is installed several times (${list}): select one with --namespace or --config`,
  );
}

function otherProgramOf({
  flags: { program, restartPods },
}: Call): (typeof otherPrograms)[string] | undefined {
  if (program === undefined) return undefined;
  if (restartPods) throw new UsageError('--restart-pods cannot be combined with --program');
  return otherPrograms[program];
}

function describe({ steps, dryRun, complete }: CleanReport): string {
  const rows = steps.map(({ step, done, failures }) => [step, `${done}`, `${failures.length || nothing}`]);
  const notes = steps.flatMap(({ step, notes }) => notes.map((note) => `${step}: ${note}\n`));
  const failures = steps.flatMap(({ step, failures }) =>
    failures.map(({ what, why }) => `${step}: ${what}: ${why}\n`),
  );
  const text = table([['STEP', dryRun ? 'WOULD DO' : 'DONE', 'FAILED'], ...rows]) + notes.join('');
  if (complete) return text;
  const advice = 'Fix the cause and run archwright clean again.\n';
  return `${text}\nCould not be removed:\n${failures.join('')}${advice}`;
}
