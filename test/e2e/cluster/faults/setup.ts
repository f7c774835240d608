/** Start and end of each fault test. Registries respond only on command, so pods are gated during faults. */
import type { Test } from 'tap';
import {
  ownNamespace,
  runArchwright,
  startController,
  type Server,
  type ControllerOptions,
  type Settings,
} from '../archwright/archwright.ts';
import { startCluster, type ClusterOptions } from '../harness.ts';
import { startImages } from '../archwright/images.ts';
import { leaderOf, shortLease, startAdmission } from '../archwright/start.ts';
import {
  createPodGroup,
  maxGateMs,
  type PodGroup,
  type PodGroupOptions,
  type PodGroupSetup,
} from './pod-group.ts';
import { isGated, type PodNow } from '../control-plane/pods.ts';
import { ownTaints, type NodeObject } from '../control-plane/nodes.ts';

export const nodes = ['amd64', 'arm64', 's390x'].map((name) => ({
  name: `${name}-0`,
  architecture: name,
  pods: 1000,
}));

export async function startFaultTest(t: Test, options: Pick<ClusterOptions, 'apiServerFlags'> = {}) {
  const cluster = await startCluster({ nodes, schedulerQps: 500, ...options }, t);
  const images = await startImages(cluster);
  const pods = await cluster.watch<PodNow>('/api/v1/namespaces/default/pods', t);
  const common: Settings = { 'on-unknown-image': 'gate' };
  const { tls, agents, webhook } = await startAdmission(cluster, { images, settings: common });
  const podGroupSetup: PodGroupSetup = { cluster, images, pods };
  return {
    ...podGroupSetup,
    tls,
    agent: agents[0],
    webhook,
    controller: (more: Omit<ControllerOptions, 'tls'> = {}): Promise<Server> => {
      const { settings, tuning, name = 'archwright-controller', env, ...rest } = more;
      return startController(cluster, {
        tls,
        agents,
        name,
        env: { HOSTNAME: name, ...env },
        tuning: { ...shortLease, ...tuning },
        settings: { ...common, 'max-gate-duration': `${maxGateMs}ms`, ...settings },
        ...rest,
      });
    },
    /** Waits until a controller leads. It is selected by the part of its name before the underscore. */
    leader: (isIt?: (name: string) => boolean): Promise<string> => leaderOf(cluster.client, isIt),
    podGroup: (wanted: PodGroupOptions): Promise<PodGroup> => createPodGroup(t, podGroupSetup, wanted),
    /** Pods that are gated until the registry responds, and then placed. */
    placesPods: async (wanted: PodGroupOptions): Promise<void> => {
      const podGroup = await createPodGroup(t, podGroupSetup, wanted);
      await podGroup.releaseGated();
      await podGroup.end();
    },
    /** Waits for this many changed pods, or this long. @returns number of changed pods */
    changes: async (count: number, ms: number): Promise<number> => {
      let seen = 0;
      pods.onChange(() => (seen += 1));
      await pods.until('changes', () => seen >= count, ms).catch(() => undefined);
      return seen;
    },
    clean: (): Promise<void> => cleanUp(t, podGroupSetup),
  };
}

async function cleanUp(t: Test, { cluster, pods }: PodGroupSetup): Promise<void> {
  const flags = [`--kubeconfig=${cluster.kubeconfig}`, `--namespace=${ownNamespace}`];
  const args = ['clean', ...flags, '--webhook-configuration=archwright'];
  const { code, output } = await runArchwright(cluster, args);
  t.equal(code, 0, 'clean exits with 0', { output });
  const namesIn = async (path: string): Promise<readonly string[]> =>
    (await cluster.list(path)).map(({ metadata }) => metadata?.name ?? '');
  const webhooks = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
  t.same(await namesIn(webhooks), [], 'no webhook configuration is left');
  await pods.until('no gate is left', (objects) => ![...objects.values()].some(isGated));
  const taints = (await cluster.list<NodeObject>('/api/v1/nodes')).flatMap(ownTaints);
  t.same(taints, [], 'no taint is left');
  for (const resource of ['secrets', 'configmaps']) {
    const found = await namesIn(`/api/v1/namespaces/${ownNamespace}/${resource}`);
    const ours = found.filter((name) => name.startsWith('archwright'));
    t.same(ours, [], `no ${resource} of ours are left`);
  }
}
