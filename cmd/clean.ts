/** `archwright clean`: removes everything that archwright added to a cluster. */
import { clean, cleanOtherProgram, otherPrograms } from '../src/clean/clean.ts';
import type { CleanReport } from '../src/clean/run.ts';
import { systemClock } from '../src/async/clock.ts';
import { findNamespace, openCluster } from './wiring/cluster.ts';
import { exitCodes, stoppedCode, UsageError } from './program/exit.ts';
import { choice, toggle, value } from './program/flag.ts';
import * as kinds from '../src/policy/value-kinds/plain.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { print, tableOf, type Column } from './program/table.ts';

const flags = {
  dryRun: toggle('Shows what would be changed, deleted or restarted.'),
  restartPods: toggle(
    'At the end, restarts Deployments and StatefulSets whose pods have archwright’s tolerations, as `kubectl rollout restart` does.',
  ),
  program: value(
    kinds.choice(Object.keys(otherPrograms)),
    'Removes the gates of `multiarch-tuning-operator` or the taints of `archaware-controller`, after you have removed that program.',
  ),
  output: choice(['table', 'json'], 'Output format.', { short: 'o' }),
};

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

async function run(invocation: Invocation<typeof flags>): Promise<number> {
  const { say, stop } = invocation;
  const { dryRun, restartPods, program } = invocation.flags;
  if (program !== undefined && restartPods)
    throw new UsageError('--restart-pods cannot be combined with --program');
  const other = program === undefined ? undefined : otherPrograms[program];
  await using opened = new AsyncDisposableStack();
  const { context, kubernetes } = await openCluster(invocation, opened);
  const { client, access } = kubernetes;
  const { configuration } = context;
  const { namespace = await findNamespace(kubernetes, configuration, stop) } = configuration;
  say(`${access.description}, namespace ${namespace}${dryRun ? ', dry run' : ''}`);
  try {
    const options = {
      client,
      namespace,
      configuration,
      dryRun,
      restartPods,
      progress: say,
      signal: stop,
      clock: systemClock,
    };
    const report = await (other ? cleanOtherProgram(options, other) : clean(options));
    print(invocation, report, describe(report));
    return report.complete ? exitCodes.success : exitCodes.failure;
  } catch (error) {
    if (!stop.aborted) throw error;
    say('stopped; run it again to continue');
    return stoppedCode(stop);
  }
}

function describe({ steps, dryRun, complete }: CleanReport): string {
  const columns: readonly Column<(typeof steps)[number]>[] = [
    ['STEP', ({ step }) => step],
    [dryRun ? 'WOULD DO' : 'DONE', ({ done }) => done],
    ['FAILED', ({ failures }) => failures.length || undefined],
  ];
  const notes = steps.flatMap(({ step, notes }) => notes.map((note) => `${step}: ${note}\n`));
  const failures = steps.flatMap(({ step, failures }) =>
    failures.map(({ what, why }) => `${step}: ${what}: ${why}\n`),
  );
  const text = tableOf(columns, steps) + notes.join('');
  if (complete) return text;
  const advice = 'Fix the cause and run archwright clean again.\n';
  return `${text}\nCould not be removed:\n${failures.join('')}${advice}`;
}
