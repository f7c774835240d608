/** Waits until the configuration is in force in every replica of an installation, and its agents answer. */
import type { Clock } from '../../src/async/clock.ts';
import { KubeError } from '../../src/kube/api/errors.ts';
import { readInstallation, type InstallationReader } from '../installation/installation.ts';
import type { Workload } from '../installation/replicas.ts';
import {
  agentProblems,
  configurationProblems,
  emptyDeployments,
  troubles,
} from '../installation/problems.ts';

export interface SettledOptions extends InstallationReader {
  /** Monotonic time at which it gives up. */
  readonly deadline: number;
  readonly clock: Clock;
  /** Receives a line for each problem, whenever there are others. */
  readonly progress: (line: string) => void;
}

/** The kubelet brings a changed ConfigMap within a minute or two. */
const pauseMs = 3000;
/** Other network policies may block the metrics of replicas. That is no fault of the installation. */
const patienceMs = 60_000;

/** A registry may answer again: the kubelet pulls again after 10 s. A missing account may appear. */
const hopelessMs = 20_000;
/** Reasons of the kubelet and the workload controllers that do not pass by themselves. */
const hopeless =
  /\b(?:CreateContainerError|RunContainerError|ImagePullBackOff|ErrImageNeverPull|InvalidImageName|FailedCreate)\b|hostPath type check failed|its configuration is wrong/;

interface Outcome {
  readonly problems: readonly string[];
  /** What could not be checked. */
  readonly notes: readonly string[];
}

/** Ends when nothing is wrong, a problem cannot pass by itself, or the time is up. @throws KubeError */
export async function settled(options: SettledOptions): Promise<Outcome> {
  const { clock, deadline, signal, progress } = options;
  const started = clock.monotonic();
  let last = '';
  let hopelessSince: number | undefined;
  for (;;) {
    const { problems, notes } = await look(options);
    const isHopeless = problems.some((each) => hopeless.test(each));
    hopelessSince = isHopeless ? (hopelessSince ?? clock.monotonic()) : undefined;
    if (hopelessSince !== undefined && clock.monotonic() - hopelessSince >= hopelessMs)
      return { problems, notes };
    const isPatient = clock.monotonic() - started < patienceMs;
    const isDone = problems.length === 0 && (notes.length === 0 || !isPatient);
    if (isDone || clock.monotonic() + pauseMs > deadline) return { problems, notes };
    const waiting = [...problems, ...notes];
    if (waiting.join('\n') !== last) for (const line of waiting) progress(`waiting: ${line}`);
    last = waiting.join('\n');
    await clock.sleep(pauseMs, signal);
  }
}

async function look(options: SettledOptions): Promise<Outcome> {
  try {
    const installation = await readInstallation(options);
    const problems = [
      // A replica that starts slowly, or has no node, is no fault of the configuration.
      ...troubles(
        installation.replicas.filter(({ hasCrashed, trouble = '' }) => hasCrashed || hopeless.test(trouble)),
      ),
      ...emptyDeployments({ ...installation, deployments: installation.deployments.filter(hasReplicas) }),
      ...configurationProblems(installation),
      ...agentProblems(installation),
    ];
    return { problems, notes: installation.unread };
  } catch (error) {
    options.signal.throwIfAborted();
    if (!(error instanceof KubeError) || !error.temporary) throw error;
    return { problems: [error.message], notes: [] };
  }
}

/** Zero replicas are intended. */
function hasReplicas({ spec }: Workload): boolean {
  return spec?.replicas !== 0;
}
