/**
 * The start and the end of each fault test. Registries answer for the images of a scene only when the test allows it, so pods are gated
 * while something fails. Afterwards each pod must be on a node that can run its images, with a requirement for them, within
 * maxGateDuration, and `archwright clean` must leave nothing.
 */
import type { Test } from 'tap';
import {
  startController,
  type Server,
  type Settings,
  type StartOptions,
  type TlsDirs,
} from '../archwright.ts';
import { startCluster, type ClusterOptions } from '../harness.ts';
import { startImages } from '../images.ts';
import { watch } from '../watch.ts';
import { cleanUp } from './clean.ts';
import { leaderOf, shortLease, startAdmission } from '../start-archwright.ts';
import { createCrowd, maxGateMs, type Crowd, type CrowdOptions, type Ground } from './crowd.ts';
import { type PodNow } from '../pods.ts';

export interface SceneOptions extends Pick<ClusterOptions, 'apiServerFlags'> {
  readonly settings?: Settings;
  /** Runs before there is a webhook. */
  readonly before?: (ground: Omit<Ground, 'pods'>) => Promise<void>;
}

export interface Scene extends Ground {
  readonly tls: TlsDirs;
  readonly agent: Server;
  readonly webhook: Server;
  controller(options?: Omit<StartOptions, 'tls'>): Promise<Server>;
  /** Waits until a controller leads; by the part of its name before the underscore. */
  leader(isIt?: (name: string) => boolean): Promise<string>;
  crowd(options: CrowdOptions): Promise<Crowd>;
  /** Waits until so many pods have changed, or for so long; resolves with how many did. */
  changes(count: number, ms: number): Promise<number>;
  /** Runs `archwright clean`, and checks that nothing of archwright is left. */
  clean(): Promise<void>;
}

export const nodes = ['amd64', 'arm64', 's390x'].map((name) => ({
  name: `${name}-0`,
  architecture: name,
  pods: 1000,
}));

export async function startScene(t: Test, options: SceneOptions = {}): Promise<Scene> {
  const { settings = {}, before, ...clusterOptions } = options;
  const cluster = await startCluster({
    nodes,
    schedulerQps: 500,
    ...clusterOptions,
  });
  t.teardown(() => cluster.stop());
  const images = await startImages(cluster);
  await before?.({ cluster, images });
  const pods = await watch<PodNow>(cluster.client, '/api/v1/namespaces/default/pods');
  t.teardown(() => pods.close());
  const common: Settings = { 'on-unknown-image': 'gate', ...settings };
  const { tls, agents, webhook } = await startAdmission(cluster, { images, settings: common });

  const scene: Scene = {
    cluster,
    tls,
    images,
    pods,
    agent: agents[0],
    webhook,
    controller: ({ settings: more, name = 'archwright-controller', env, ...rest } = {}) =>
      startController(cluster, {
        tls,
        agents,
        name,
        env: { HOSTNAME: name, ...env },
        settings: { ...common, ...shortLease, 'max-gate-duration': `${maxGateMs}ms`, ...more },
        ...rest,
      }),
    leader: (isIt) => leaderOf(cluster.client, isIt),
    crowd: (wanted) => createCrowd(t, scene, wanted),
    changes: async (count, ms) => {
      let seen = 0;
      pods.onChange(() => {
        seen += 1;
      });
      await pods.until('changes', () => seen >= count, ms).catch(() => undefined);
      return seen;
    },
    clean: () => cleanUp(t, scene),
  };
  return scene;
}
