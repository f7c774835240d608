/** A webhook with real agents of several credential groups, and the nodes on which its pods land. */
import { createFakeClock } from '../support/fake-clock.ts';
import type { Test } from 'tap';
import { FactsCache } from '../../src/images/cache/cache.ts';
import type { Pod, PodSpec } from '../../src/kube/api/objects.ts';
import type { Operation } from '../../src/placement/decision.ts';
import type { Cluster } from '../../src/cluster/cluster.ts';
import { denied, setup as setupFleet } from '../fleet/fleet-setup.ts';
import { type Script } from '../fleet/support.ts';
import { applied, defaultPolicy as policy } from '../support/placement-input.ts';
import { selects, type ModelNode } from '../support/scheduler-model.ts';
import { podOf, serve, type Admitted } from './support.ts';
import { recordingLog } from '../support/captured.ts';

/** How long an admission waits, on the clock of the test. */
export const budgetMs = 500;

/** The first agent owns its repository. */
export const image = 'registry.example/team/app:1';

export const able: Script = { fingerprint: 'able-group', node: 'node-able', architecture: 'amd64' };
export const poor: Script = {
  fingerprint: 'poor-group',
  node: 'node-poor',
  architecture: 'amd64',
  facts: denied('unauthorized'),
};

/** Nodes with agents, and a new one without. */
const nodes: readonly ModelNode[] = ['node-able', 'node-poor', 'node-new'].map((name) => ({
  name,
  labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/arch': 'amd64' },
  taints: [],
}));

export interface Given {
  readonly cluster?: Cluster;
  readonly requirePullableNodes?: boolean;
}

export async function setup(t: Test, scripts: readonly Script[], given: Given = {}) {
  const clock = createFakeClock();
  const { fleet, agents } = await setupFleet(t, scripts, { clock });
  const cache = new FactsCache({ source: fleet, log: recordingLog().log });
  const { requirePullableNodes = true } = given;
  const served = await serve(t, {
    cache,
    fleet,
    clock,
    level: 'debug',
    policies: { policyOf: () => ({ ...policy, requirePullableNodes }) },
    inlineBudgetMs: () => budgetMs,
    ...(given.cluster && { cluster: given.cluster }),
  });
  const admit = (spec: Partial<PodSpec> = {}, images = [image]): Promise<Admitted> =>
    served.admitPod(images, spec);
  /** Names of the nodes on which an admitted pod can run. */
  const lands = async (spec: Partial<PodSpec> = {}, images = [image]): Promise<readonly string[]> => {
    const { operations } = await admit(spec, images);
    return landing(applied(podOf(images, spec), operations as readonly Operation[]));
  };
  /** The number of requests to each agent. */
  const requestCounts = (): readonly number[] => agents.map((agent) => agent.requests.length);
  return { ...served, send: served.admit, clock, agents, requestCounts, fleet, admit, lands };
}

function landing(pod: Pod): readonly string[] {
  return nodes.filter((node) => selects(pod.spec, node)).map(({ name }) => name);
}
