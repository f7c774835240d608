/**
 * Reports on the agents' DaemonSets which credentials their nodes do not use, and why: a missing, misnamed or
 * malformed file, or a failing plugin. Nodes with one problem share an event, repeated while it lasts.
 */
import { describeProblem } from '../../../credentials/problems.ts';
import type { SourceProblem } from '../../../credentials/credential.ts';
import type { OwnerReference } from '../../../kube/api/objects.ts';
import { listed } from '../../../names/printable.ts';
import { gauge, type Gauge } from '../../../telemetry/metrics.ts';
import type { Feature } from '../../lead/feature.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';
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
    const problems = new CredentialProblems(leader);
    return { keys: () => ['all'], reconcile: async () => problems.reconcile() };
  },
};

class CredentialProblems {
  readonly #leader: LeaderContext;
  readonly #count: Gauge;
  readonly #setInfo: (labels: { readonly ids: string }) => void;
  readonly #reporter: Reporter;

  constructor(leader: LeaderContext) {
    this.#leader = leader;
    this.#count = leader.metrics.gauge(credentialProblemsNow);
    this.#setInfo = leader.metrics.info(credentialProblemsInfo);
    this.#reporter = new Reporter(leader);
  }

  reconcile(): void {
    const { namespace, events } = this.#leader;
    const reports = new Map([...this.#reports()].slice(0, maxReported));
    for (const { daemonSet, problem, nodes } of this.#reporter.dueOf(reports)) {
      const names = listed(nodes.toSorted(), (node) => node, maxNodesBytes);
      const message = `${names}${notUsed}${describeProblem(problem)}`;
      const about = referenceOf(namespace, daemonSet);
      events.record(about, { type: 'Warning', reason: 'CredentialProblem', message });
    }
    this.#count.set(reports.size);
    this.#setInfo({
      ids: [...reports.values()].map(({ problem }) => idOf(describeProblem(problem))).join(' '),
    });
  }

  #reports(): ReadonlyMap<string, Report> {
    const byNode = this.#leader.fleet?.credentialProblems();
    const reports = new Map<string, Report>();
    for (const { node, owner } of this.#agents()) {
      for (const problem of [...this.#otherRuntime(node), ...(byNode?.get(node) ?? [])]) {
        const id = JSON.stringify([owner.uid, problem]);
        const report = reports.get(id) ?? { daemonSet: owner, problem, nodes: [] };
        report.nodes.push(node);
        reports.set(id, report);
      }
    }
    return reports;
  }

  /** An agent that reads the files of a runtime that the kubelet does not use. */
  #otherRuntime(node: string): readonly SourceProblem[] {
    const { caches, fleet } = this.#leader;
    const [used, read] = [caches.nodes.get('', node)?.classified?.class, fleet?.nodeReports().get(node)].map(
      (each) => runtimeNames.find((name) => name === each?.runtime?.name),
    );
    if (used === undefined || read === undefined || used === read) return [];
    const message = `the kubelet uses ${used}, and the agent reads the configuration of ${read}: set runtime = "${used}" for these nodes`;
    return [{ source: read, origin: 'container runtime', message }];
  }

  /** The agents' pods. Others in the namespace have other service accounts. */
  #agents() {
    const { namespace, caches, agentServiceAccount } = this.#leader;
    return [...caches.runningPods.values(namespace)]
      .filter(({ serviceAccountName }) => serviceAccountName === agentServiceAccount)
      .filter(isDaemon);
  }
}
