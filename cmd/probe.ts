/** `archwright probe`: creates a pod in a dry run to see whether the API server calls the webhook. */
import { isCode, KubeError } from '../src/kube/api/errors.ts';
import type { KubeClient } from '../src/kube/api/client.ts';
import type { Pod } from '../src/kube/api/objects.ts';
import { duration } from '../src/policy/value-kinds/plain.ts';
import { keys } from '../src/names/keys.ts';
import { formatDuration } from '../src/names/quantity.ts';
import { systemClock, type Clock } from '../src/async/clock.ts';
import { connect, findNamespace } from './wiring/cluster.ts';
import { exitCodes } from './program/exit.ts';
import { text, toggle, value, withDefault } from './program/flag.ts';
import type { Invocation, Subcommand } from './program/subcommand.ts';
import { paths } from '../src/kube/api/paths.ts';
import { createScrape } from './installation/scrape.ts';
import { readInstallation, type InstallationReader } from './installation/installation.ts';
import { agentProblems, configurationProblems, emptyDeployments, troubles } from './installation/problems.ts';

const day = 86_400_000;

const flags = {
  podNamespace: withDefault(text('NAMESPACE', 'Namespace of the pod.'), 'default'),
  image: withDefault(text('IMAGE', 'Image of the pod.'), 'registry.k8s.io/pause:3.10'),
  installation: toggle(
    'For the chart: also waits until the configuration is in force everywhere and agents answer.',
  ),
  timeout: withDefault(value(duration(0, day), 'Time limit.'), 30_000, '30s'),
};

export const subcommand: Subcommand<typeof flags> = {
  usage: '[FLAGS]',
  description:
    'Checks whether the API server calls the webhook, by a server-side dry run of a pod. Exit code: 0 if it was called, 1 if not in time, 2 for wrong usage, 3 if the API server refuses the pod or does not answer.',
  settings: 'probe',
  flags,
  run,
};

/** An API server needs about a second to follow a changed webhook configuration. */
const pauseMs = 2000;

async function run(invocation: Invocation<typeof flags>): Promise<number> {
  const { flags, io, say, stop: signal } = invocation;
  const { podNamespace: namespace, image, timeout: timeoutMs, installation } = flags;
  await using opened = new AsyncDisposableStack();
  const { own, kubernetes } = await connect(invocation, opened);
  const { client } = kubernetes;
  const clock = systemClock;
  const trying = { client, clock, deadline: clock.monotonic() + timeoutMs, signal, progress: say };
  if (installation) {
    const { namespace = await findNamespace(kubernetes, own.configuration, signal) } = own.configuration;
    const { problems, notes } = await settled({ ...trying, namespace, scrape: createScrape(kubernetes) });
    for (const note of notes) say(`not checked: ${note}`);
    if (problems.length > 0) {
      say(`archwright does not work:\n  ${problems.join('\n  ')}`);
      return exitCodes.failure;
    }
    io.out('the configuration is in force, and agents answer\n');
  }
  const { code, what, isFinal } = await probe({ ...trying, namespace, image });
  if (code === exitCodes.success) io.out(`the webhook answers: ${what}\n`);
  else say(isFinal ? what : `not within ${formatDuration(timeoutMs)}: ${what}`);
  return code;
}

interface Trying {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** Monotonic time at which it gives up. */
  readonly deadline: number;
  readonly signal: AbortSignal;
  /** Receives what is wrong after each try. */
  readonly progress: (line: string) => void;
}

export interface ProbeOptions extends Trying {
  readonly namespace: string;
  readonly image: string;
}

/** Tries until the webhook is called, the API server refuses the pod, or the time is up. */
export async function probe(options: ProbeOptions) {
  const { clock, deadline, signal, progress } = options;
  for (;;) {
    const answer = await tryOnce(options);
    if (answer.isFinal || clock.monotonic() + pauseMs > deadline) return answer;
    progress(answer.what);
    await clock.sleep(pauseMs, signal);
  }
}

/**
 * @returns `code`: `success`: the webhook was called; `failure`: it was not, because the API server took the pod.
 * `isFinal`: another try cannot help
 */
async function tryOnce({ client, namespace, image, signal }: ProbeOptions) {
  try {
    const query = { dryRun: 'All' };
    const pod = await client.create<Pod>(paths.pods(namespace), podOf(image), { signal, query });
    const { [keys.decision]: decision, [keys.summary]: summary } = pod.metadata?.annotations ?? {};
    if (decision !== untouched) {
      const recorded = summary === undefined ? decision : `${summary} (recorded as ${decision})`;
      const what = `its decision: ${recorded ?? 'nothing to add'}`;
      return { code: exitCodes.success, what, isFinal: true };
    }
    const what =
      'the pod came back unchanged; the webhook is not in force, or not for this namespace: see archwright status';
    return { code: exitCodes.failure, what, isFinal: false };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof KubeError)) throw error;
    // A refusal by the webhook shows that it was called.
    const isCalled = /admission webhook "[^"]*\.arch\.example"/.test(error.message);
    // RBAC, quotas, policies and other webhooks refuse with 403, a missing namespace with 404. They would
    // refuse the next try too.
    const isFinal = isCalled || isCode(error, 'forbidden', 'unauthorized', 'not-found');
    const code = isCalled ? exitCodes.success : exitCodes.unanswered;
    return { code, what: error.message, isFinal };
  }
}

/** Not a decision of the webhook: the webhook always replaces or removes it. */
const untouched = 'probe';

/** A pod that every Pod Security level admits. */
function podOf(image: string): object {
  const securityContext = {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    runAsNonRoot: true,
    runAsUser: 65_532,
    seccompProfile: { type: 'RuntimeDefault' },
  };
  const resources = { requests: { cpu: '1m', memory: '1Mi' }, limits: { cpu: '1m', memory: '1Mi' } };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'archwright-probe-', annotations: { [keys.decision]: untouched } },
    spec: {
      automountServiceAccountToken: false,
      restartPolicy: 'Never',
      containers: [{ name: 'probe', image, resources, securityContext }],
    },
  };
}

/** The kubelet brings a changed ConfigMap within a minute or two. */
const settlingMs = 3000;
/** Other network policies may block the metrics of replicas. That is no fault of the installation. */
const patienceMs = 60_000;

/** A registry may answer again: the kubelet pulls again after 10 s. A missing account may appear. */
const hopelessMs = 20_000;
/** Reasons of the kubelet and the workload controllers that do not pass by themselves. */
const hopeless =
  /\b(?:CreateContainerError|RunContainerError|ImagePullBackOff|ErrImageNeverPull|InvalidImageName|FailedCreate)\b|hostPath type check failed|its configuration is wrong/;

/**
 * Waits until the configuration is in force in every replica of an installation, and its agents answer.
 * Ends when nothing is wrong, a problem cannot pass by itself, or the time is up.
 * @throws KubeError
 */
export async function settled(options: Trying & InstallationReader) {
  const { clock, deadline, signal, progress } = options;
  const started = clock.monotonic();
  let hopelessSince: number | undefined;
  for (;;) {
    const { problems, notes } = await look(options);
    const isHopeless = problems.some((each) => hopeless.test(each));
    hopelessSince = isHopeless ? (hopelessSince ?? clock.monotonic()) : undefined;
    if (hopelessSince !== undefined && clock.monotonic() - hopelessSince >= hopelessMs)
      return { problems, notes };
    const isPatient = clock.monotonic() - started < patienceMs;
    const isDone = problems.length === 0 && (notes.length === 0 || !isPatient);
    if (isDone || clock.monotonic() + settlingMs > deadline) return { problems, notes };
    for (const line of [...problems, ...notes]) progress(`waiting: ${line}`);
    await clock.sleep(settlingMs, signal);
  }
}

/** @returns `notes`: what could not be checked */
async function look(options: InstallationReader) {
  try {
    const installation = await readInstallation(options);
    const { replicas, deployments } = installation;
    const problems = [
      // A replica that starts slowly, or has no node, is no fault of the configuration.
      ...troubles(replicas.filter(({ hasCrashed, trouble = '' }) => hasCrashed || hopeless.test(trouble))),
      // Zero replicas are intended.
      ...emptyDeployments({
        ...installation,
        deployments: deployments.filter((each) => each.spec?.replicas !== 0),
      }),
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
