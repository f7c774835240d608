/** `archwright clean`: takes what archwright put into a cluster out of it again. */
import { clean, type CleanReport } from '../src/controller/clean/clean.ts';
import { namespacesOfLease } from '../src/controller/clean/namespace.ts';
import { cleanOtherProgram, otherPrograms } from '../src/controller/clean/other-programs.ts';
import { createRateLimiter } from '../src/async/rate-limiter.ts';
import type { Configuration } from '../src/policy/configuration/configuration.ts';
import { didYouMean } from '../src/names/suggestion.ts';
import { wait } from '../src/async/wait.ts';
import { systemClock } from '../src/async/clock.ts';
import { scrub } from '../src/telemetry/scrub.ts';
import { openKubernetes, type Kubernetes } from './wiring/kubernetes.ts';
import { openCliContext, outputOf } from './program/cli-context.ts';
import { stoppedCode } from './program/signals.ts';
import { exitCodes, UsageError, type Invocation, type Subcommand } from './program/subcommand.ts';
import { nothing, table } from './program/table.ts';

const outputs = ['table', 'json'] as const;

export const subcommand: Subcommand = {
  usage: '[FLAGS]',
  description:
    'Removes what archwright put into a cluster, and nothing else: the webhook configuration, the scheduling gate of every ' +
    'pod, taints, finalizers, then what the controller created. It works in a pod or with a kubeconfig, with or without a ' +
    'running controller, and may be run again at any time. Exit code: 0 where nothing is left, 1 where something could not ' +
    'be removed, 2 for wrong usage.',
  settings: 'clean',
  flags: {
    'dry-run': { help: 'Only says what it would do.' },
    'restart-pods': {
      help:
        'Evicts the pods that carry our tolerations afterwards, one of each workload at a time; PodDisruptionBudgets hold. ' +
        'Pods of DaemonSets and Jobs and pods without an owner stay.',
    },
    program: {
      value: 'NAME',
      help:
        'Removes what another program left behind instead, once it is stopped: the gates of `multiarch-tuning-operator`, the ' +
        'taints of `archaware-controller`.',
    },
    output: { value: 'table|json', short: 'o', help: 'How to write what was done. Default: table.' },
  },
  run,
};

async function run(invocation: Invocation): Promise<number> {
  const { io, flags, positionals, stop } = invocation;
  if (positionals.length > 0)
    throw new UsageError('clean', `takes no arguments, not ${positionals.join(', ')}`);
  const output = outputOf('clean', invocation, outputs);
  const other = otherProgramOf(invocation);
  const { configuration } = await openCliContext(invocation);
  const kubernetes = await openKubernetes(configuration, invocation, 'own kubeconfig');
  if (!kubernetes) throw new UsageError('clean', 'name the cluster by --kubeconfig');
  const { client, access } = kubernetes;
  const namespace = configuration.namespace ?? (await findNamespace(kubernetes, configuration, stop));
  const { kubeRequestsPerSecond: perSecond, kubeRequestsBurst: burst } = configuration;
  const say = (line: string): void => io.err(scrub(`archwright clean: ${line}\n`));
  say(`${access.description}, namespace ${namespace}${flags.has('dry-run') ? ', dry run' : ''}`);
  try {
    const options = {
      client,
      limiter: createRateLimiter({ perSecond, burst, clock: systemClock }),
      namespace,
      configuration,
      dryRun: flags.has('dry-run'),
      restartPods: flags.has('restart-pods'),
      progress: say,
      signal: stop,
      clock: systemClock,
      sleep: wait,
    };
    const report = await (other ? cleanOtherProgram(options, other) : clean(options));
    io.out(output === 'json' ? `${JSON.stringify(report, undefined, 2)}\n` : describe(report));
    return report.complete ? exitCodes.success : exitCodes.failure;
  } catch (error) {
    if (!stop.aborted) throw error;
    say('stopped; run it again to go on');
    return stoppedCode(stop);
  } finally {
    client.close();
  }
}

function otherProgramOf({ flags }: Invocation): (typeof otherPrograms)[string] | undefined {
  const name = flags.get('program')?.at(-1);
  if (name === undefined) return undefined;
  const known = Object.keys(otherPrograms);
  const program = Object.hasOwn(otherPrograms, name) ? otherPrograms[name] : undefined;
  if (program === undefined)
    throw new UsageError('clean', `--program must be ${known.join(' or ')}${didYouMean(name, known)}`);
  if (flags.has('restart-pods'))
    throw new UsageError('clean', '--restart-pods is for pods of archwright; leave it out with --program');
  return program;
}

/** In a pod it is the pod's; from outside the Lease says where it is. */
async function findNamespace(
  { client, access, podNamespace }: Kubernetes,
  { leaseName }: Configuration,
  signal: AbortSignal,
): Promise<string> {
  if (podNamespace !== undefined) return podNamespace;
  const [found, ...more] = (await namespacesOfLease(client, leaseName, signal)) ?? [];
  if (more.length === 0) return found ?? access.namespace;
  const list = [found, ...more].join(', ');
  throw new UsageError('clean', `archwright runs in several namespaces (${list}): name one by --namespace`);
}

function describe({ steps, dryRun, complete }: CleanReport): string {
  const done = dryRun ? 'WOULD CHANGE' : 'DONE';
  const rows = steps.map(({ step, done, failures }) => [
    step,
    String(done),
    failures.length === 0 ? nothing : String(failures.length),
  ]);
  const notes = steps.flatMap((step) => step.notes.map((note) => `${step.step}: ${note}\n`));
  const failures = steps.flatMap(({ step, failures }) =>
    failures.map(({ what, why }) => `${step}: ${what}: ${why}\n`),
  );
  return [
    table([['STEP', done, 'FAILED'], ...rows]),
    ...notes,
    ...(complete
      ? []
      : ['\nCould not be removed:\n', ...failures, 'Mend that and run archwright clean again.\n']),
  ].join('');
}
