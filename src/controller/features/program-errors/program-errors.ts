/**
 * Programs in running containers that their node could not execute, as agents with `execFormatErrorTracing`
 * report them: an event on the pod and its workload. The file may be a script without `#!`, and a compromised
 * node reports what it wants, so nothing is noted, and placement does not change.
 */
import { RateLimiters } from '../../../async/rate-limiter.ts';
import { ignoring } from '../../../kube/api/errors.ts';
import type { PodWithStatus } from '../../../kube/api/objects.ts';
import { paths } from '../../../kube/api/paths.ts';
import { countedArchitectures } from '../../../names/architecture.ts';
import { maxImageBytes, printable } from '../../../names/printable.ts';
import { tracingStates, type ExecError } from '../../../nodes/exec-report.ts';
import { counter, gauge, itemCounts } from '../../../telemetry/metrics.ts';
import type { Feature, LeaderContext } from '../../lead/feature.ts';
import { skippedPods } from '../../pods/skipped-pods.ts';
import { isDaemon } from '../../pods/workload.ts';
import { Reporter } from '../../report/reporter.ts';
import type { RunningPod } from '../../state/cached.ts';

const errorsTotal = counter(
  'archwright_program_exec_format_errors_total',
  'Programs in running containers that their node could not execute, by its architecture. Each counts once in half an hour.',
  { architecture: countedArchitectures },
);

const containersNow = gauge(
  'archwright_program_exec_format_containers',
  'Containers with such programs in the last ten minutes.',
);

const tracingNodes = gauge(
  'archwright_exec_tracing_nodes',
  'Nodes under `execFormatErrorTracing`. `on`: its agent traces them; otherwise the reason why not.',
  { state: tracingStates },
);

/** Agents report about once a minute. */
const resyncMs = 15_000;
/** Anyone who runs a pod can cause reports; each costs a read of the pod, and events. */
const reportsOfNamespace = { perSecond: 0.1, burst: 5 };
const maxNamespaces = 5000;

export const programErrors: Feature = {
  name: 'program-errors',
  metrics: [errorsTotal, containersNow, tracingNodes],
  resyncMs,
  inRounds: true,
  start: (leader) => {
    const report = createReports(leader);
    const showNodes = itemCounts(leader.metrics, tracingNodes);
    const containers = leader.metrics.gauge(containersNow);
    return {
      keys: () => ['all'],
      reconcile: async () => {
        showNodes(leader.fleet?.execErrors().values() ?? [], ({ state }) => [{ state }]);
        const found = errorsNow(leader);
        containers.set(new Set(found.map(({ error }) => error.container)).size);
        for (const { pod, error } of found) await report(pod, error);
      },
    };
  },
};

/** An agent can only report pods of its own node. */
function errorsNow(leader: LeaderContext) {
  const { caches, fleet, configuration } = leader;
  const reports = fleet?.execErrors();
  if (!reports?.size || !configuration().execFormatErrorMonitor) return [];
  const isSkipped = skippedPods(leader);
  return [...caches.runningPods.values()].flatMap((pod) => {
    const errors = reports.get(pod.node)?.errors.filter((error) => error.pod === pod.uid) ?? [];
    if (errors.length === 0 || (!isDaemon(pod) && isSkipped(pod))) return [];
    return errors.map((error) => ({ pod, error }));
  });
}

function createReports(leader: LeaderContext) {
  const { client, clock, signal, metrics, caches } = leader;
  const reporter = new Reporter(leader);
  const limiters = new RateLimiters({ ...reportsOfNamespace, clock }, maxNamespaces);
  /** Over the limit of its namespace, an error waits: agents repeat it for ten minutes. */
  return async (pod: RunningPod, error: ExecError): Promise<void> => {
    const cause = [pod.uid, error.container, error.program].join(' ');
    if (reporter.isRecent(cause) || limiters.get(pod.namespace).takeOrDelayMs() > 0) return;
    const path = paths.pods(pod.namespace, pod.name);
    const now = await ignoring('not-found', client.get<PodWithStatus>(path, { signal }));
    if (!reporter.isDue(cause)) return;
    const container = now?.metadata?.uid === pod.uid ? containerOf(now, error.container) : undefined;
    if (container === undefined) return;
    const architecture = caches.nodes.get('', pod.node)?.architecture ?? '';
    metrics.counter(errorsTotal, { architecture }).inc();
    const message = describe(pod, { ...error, container }, architecture);
    const subject = [container, error.program].join(' ');
    reporter.record(pod, { type: 'Warning', reason: 'ProgramExecFormatError', message }, subject);
  };
}

/** The container that has this ID, or had it before it was restarted. */
function containerOf({ status = {} }: PodWithStatus, id: string): string | undefined {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].find(
    ({ containerID, lastState }) =>
      [containerID, lastState?.terminated?.containerID].some((each) => each?.endsWith(`://${id}`)),
  )?.name;
}

function describe({ node, images }: RunningPod, { container, program }: ExecError, architecture: string) {
  const image = images.find(({ usedBy }) => usedBy === container)?.image;
  const where = image === undefined ? container : `${container} (${printable(image, maxImageBytes)})`;
  return (
    `Container ${where}: ${program ?? 'a process'} tried to execute a file, and node ${node} (${architecture}) ` +
    'returned "exec format error". The file is a program for another architecture, or a script without "#!", ' +
    'which shells can run all the same. Placement does not change.'
  );
}
