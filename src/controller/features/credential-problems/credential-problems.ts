/**
 * Reports on the agents' DaemonSets which credentials their nodes do not use, and why: a missing, misnamed or
 * malformed file, or a failing plugin. Nodes with one problem share an event, repeated while it lasts.
 */
import { describeSourceProblem } from '../../../credentials/problems.ts';
import type { SourceProblem } from '../../../credentials/credential.ts';
import type { OwnerReference } from '../../../kube/api/objects.ts';
import { listed } from '../../../names/printable.ts';
import { gauge } from '../../../telemetry/metrics.ts';
import type { Feature, LeaderContext } from '../../lead/feature.ts';
import { Reporter } from '../../report/reporter.ts';
import { isDaemon, referenceOf } from '../../pods/workload.ts';
import { hashText } from '../../../names/hash.ts';
import { runtimeNames } from '../../../nodes/node-report.ts';

const credentialProblemsNow = gauge(
  'archwright_credential_problems',
  'Credentials that nodes do not use now; at most 20. Events of the agents’ DaemonSet name them.',
);

export const credentialProblemsInfo = gauge(
  'archwright_credential_problems_info',
  'Always 1. `ids`: hashes of these problems, by which `archwright status` finds their events.',
  { ids: [] },
);

/** Agents report about once a minute. */
const resyncMs = 15_000;
/** The first ones are enough. */
const maxReported = 20;
/** The API server limits the whole message to 1024 bytes. */
const maxNodesBytes = 200;

const notUsed = ': credentials are not used: ';

/** The identity of the problem that an event is about, whatever its nodes are. */
export function idOfEvent(message: string): string {
  return idOf(message.slice(message.indexOf(notUsed) + notUsed.length));
}

/** The API server cuts messages of events. */
function idOf(text: string): string {
  return hashText([text.slice(0, 200)]);
}

interface Report {
  readonly daemonSet: OwnerReference;
  readonly problem: SourceProblem;
  readonly nodes: string[];
}

export const credentialProblems: Feature = {
  name: 'credential-problems',
  metrics: [credentialProblemsNow, credentialProblemsInfo],
  resyncMs,
  inRounds: true,
  // Before the agents' first reports, no problem is known: events of an earlier leader may still be true.
  ready: async ({ caches, fleet, signal }) => {
    await caches.ready(signal);
    await fleet?.grouped(signal);
  },
  start: (leader) => {
    const report = createReports(leader);
    return { keys: () => ['all'], reconcile: async () => report() };
  },
};

/** @returns reports the problems that there are now */
function createReports(leader: LeaderContext): () => void {
  const { namespace, events, metrics } = leader;
  const count = metrics.gauge(credentialProblemsNow);
  const setInfo = metrics.info(credentialProblemsInfo);
  const reporter = new Reporter(leader);
  return () => {
    const reports = new Map([...reportsOf(leader)].slice(0, maxReported));
    for (const { daemonSet, problem, nodes } of reporter.dueOf(reports)) {
      const names = listed(nodes.toSorted(), (node) => node, maxNodesBytes);
      const message = `${names}${notUsed}${describeSourceProblem(problem)}`;
      events.record(referenceOf(namespace, daemonSet), {
        type: 'Warning',
        reason: 'CredentialProblem',
        message,
      });
    }
    count.set(reports.size);
    setInfo({
      ids: [...reports.values()].map(({ problem }) => idOf(describeSourceProblem(problem))).join(' '),
    });
  };
}

function reportsOf(leader: LeaderContext): ReadonlyMap<string, Report> {
  const { namespace, caches, fleet, agentServiceAccount } = leader;
  const byNode = fleet?.credentialProblems();
  const reports = new Map<string, Report>();
  for (const pod of caches.runningPods.values(namespace)) {
    // Other pods of the namespace have other service accounts.
    if (pod.serviceAccountName !== agentServiceAccount || !isDaemon(pod)) continue;
    const { node, owner } = pod;
    for (const problem of [...otherRuntime(node, leader), ...(byNode?.get(node) ?? [])]) {
      const id = JSON.stringify([owner.uid, problem]);
      const report = reports.get(id) ?? { daemonSet: owner, problem, nodes: [] };
      report.nodes.push(node);
      reports.set(id, report);
    }
  }
  return reports;
}

/** An agent that reads the files of a runtime that the kubelet does not use. */
function otherRuntime(node: string, { caches, fleet }: LeaderContext): readonly SourceProblem[] {
  const [used, read] = [caches.nodes.get('', node)?.classified?.class, fleet?.nodeReports().get(node)].map(
    (each) => runtimeNames.find((name) => name === each?.runtime?.name),
  );
  if (used === undefined || read === undefined || used === read) return [];
  const message = `the kubelet uses ${used}, and the agent reads the configuration of ${read}: set runtime = "${used}" for these nodes`;
  return [{ source: read, origin: 'container runtime', message }];
}
