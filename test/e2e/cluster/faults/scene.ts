/**
 * What each test of faults begins and ends with. Images of a scene become known only when the test lets them, so pods wait behind the
 * gate while something goes wrong; afterwards each pod must be where its images can run, by a requirement that says so, within the
 * time that the settings promise, and `archwright clean` must leave nothing.
 */
import type { Test } from 'tap';
import type { KubeObject, Pod } from '../../../../src/kube/objects.ts';
import {
  configureWebhook,
  ownNamespace,
  prepareArchwright,
  runArchwright,
  startAgent,
  startController,
  startWebhook,
  type Server,
  type Settings,
  type StartOptions,
  type TlsDirs,
} from '../archwright.ts';
import { patience, startCluster, type Cluster, type ClusterOptions } from '../harness.ts';
import { startImages, type Images } from '../images.ts';
import type { NodeObject } from '../nodes.ts';
import { waitFor, watch, type Watched } from '../watch.ts';

type Lease = KubeObject & { readonly spec?: { readonly holderIdentity?: string } };

export interface PodNow extends Pod {
  readonly status?: { readonly phase?: string };
}

export interface SceneOptions extends Pick<ClusterOptions, 'apiServerFlags'> {
  readonly settings?: Settings;
}

/** Pods that were created together, and what they must come to. */
export interface Crowd {
  readonly names: readonly string[];
  /** Lets their images become known. */
  release(): void;
  /** Waits until all wait behind our gate. */
  gated(): Promise<void>;
  /** Waits until all are bound, and checks each. */
  end(): Promise<void>;
}

export interface Scene {
  readonly cluster: Cluster;
  readonly tls: TlsDirs;
  readonly images: Images;
  readonly pods: Watched<PodNow>;
  readonly agent: Server;
  readonly webhook: Server;
  controller(options?: Omit<StartOptions, 'tls'>): Promise<Server>;
  /** Waits until a controller leads; by the part of its name before the underscore. */
  leader(isIt?: (name: string) => boolean): Promise<string>;
  crowd(options: CrowdOptions): Promise<Crowd>;
  /** Waits until so many pods have changed, or for so long; resolves with how many did. */
  changes(count: number, ms: number): Promise<number>;
  /** Runs `archwright clean`, and checks that nothing of ours is left. */
  clean(): Promise<void>;
}

export interface CrowdOptions {
  readonly name: string;
  readonly count: number;
  /** Whether some have an image that no registry has. */
  readonly withUnknown?: boolean;
}

export const maxGateMs = 15_000;
/** What the issue of faults allows on top. */
const graceMs = 30_000;
const kinds = [['arm64'], ['amd64', 's390x'], ['s390x'], ['amd64', 'arm64']] as const;

/** Short times, so that a new leader is there within seconds. */
export const shortLease: Settings = {
  'lease-duration': '3s',
  'lease-renew-deadline': '2s',
  'lease-retry-period': '300ms',
};

export async function startScene(t: Test, options: SceneOptions = {}): Promise<Scene> {
  const { settings = {}, ...clusterOptions } = options;
  const cluster = await startCluster({
    nodes: ['amd64', 'arm64', 's390x'].map((name) => ({ name: `${name}-0`, architecture: name, pods: 1000 })),
    schedulerQps: 500,
    ...clusterOptions,
  });
  t.teardown(() => cluster.stop());
  const images = await startImages(cluster);
  const tls = await prepareArchwright(cluster);
  const pods = await watch<PodNow>(cluster.client, '/api/v1/namespaces/default/pods');
  t.teardown(() => pods.close());
  const agent = await startAgent(cluster, { tls, settings: images.settings });
  const common: Settings = { 'on-unknown-image': 'gate', ...settings };
  const webhook = await startWebhook(cluster, { tls, agents: [agent], settings: common });
  await configureWebhook(cluster, { tls, webhook });
  const leasePath = `/apis/coordination.k8s.io/v1/namespaces/${ownNamespace}/leases/archwright-controller`;

  const scene: Scene = {
    cluster,
    tls,
    images,
    pods,
    agent,
    webhook,
    controller: ({ settings: more, name = 'archwright-controller', env, ...rest } = {}) =>
      startController(cluster, {
        tls,
        agents: [agent],
        name,
        env: { HOSTNAME: name, ...env },
        settings: { ...common, ...shortLease, 'max-gate-duration': `${maxGateMs}ms`, ...more },
        ...rest,
      }),
    leader: async (isIt = (name) => name !== '') => {
      const lease = await waitFor<Lease>(cluster.client, leasePath, (now) =>
        isIt(nameOf(now?.spec?.holderIdentity)),
      );
      return nameOf(lease?.spec?.holderIdentity);
    },
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

function nameOf(identity = ''): string {
  return identity.split('_')[0] ?? '';
}

async function createCrowd(t: Test, scene: Scene, options: CrowdOptions): Promise<Crowd> {
  const { cluster, images, pods } = scene;
  const { name, count, withUnknown = false } = options;
  const references = kinds.map((architectures, index) =>
    images.push(`${name}-${index}`, architectures, 'troubled'),
  );
  const known = Promise.withResolvers<void>();
  const path = new RegExp(`/${name}-[0-9]/`);
  const clear = images.troubled.faults.add({ path, fault: { kind: 'after', event: known.promise } });
  const wanted = Array.from({ length: count }, (_, index) => {
    const unknown = withUnknown && index % 10 === 9;
    return {
      name: `${name}-${index}`,
      image: unknown ? `${images.troubled.host}/${name}-absent:1` : (references[index % kinds.length] ?? ''),
      architectures: unknown ? undefined : kinds[index % kinds.length],
    };
  });
  const created = performance.now();
  const left = [...wanted];
  const work = async (): Promise<void> => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) {
      await cluster.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: one.name },
        spec: { containers: [{ name: 'app', image: one.image }] },
      });
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
  const now = (each: string): PodNow | undefined => pods.objects.get(`default/${each}`);

  return {
    names: wanted.map((one) => one.name),
    release: () => {
      clear();
      known.resolve();
    },
    gated: async () => {
      await pods.until(`${name}: all are gated`, () => wanted.every((one) => isGated(now(one.name))));
    },
    end: async () => {
      const rest = Math.max(1000, maxGateMs + graceMs - (performance.now() - created));
      const late = await pods
        .until(`${name}: all are bound`, () => wanted.every((one) => now(one.name)?.spec.nodeName), rest)
        .then(
          () => [],
          () => wanted.filter((one) => !now(one.name)?.spec.nodeName),
        );
      t.same(
        late.map((one) => summary(now(one.name))),
        [],
        `${name}: no pod is lost, or gated longer than it may be`,
      );
      const wrong = wanted.filter((one) => !isRight(now(one.name), one.architectures));
      t.same(
        wrong.map((one) => summary(now(one.name))),
        [],
        `${name}: every pod requires what its images can run on`,
      );
    },
  };
}

/** Bound where its images can run, by a requirement that says just that; where they are unknown, by none. */
function isRight(pod: PodNow | undefined, architectures: readonly string[] | undefined): boolean {
  const terms =
    pod?.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (architectures === undefined) return terms === undefined;
  const required = (terms ?? []).flatMap((term) => term.matchExpressions ?? []);
  const [only] = required;
  return (
    required.length === 1 &&
    only?.key === 'kubernetes.io/arch' &&
    [...(only.values ?? [])].sort().join() === [...architectures].sort().join() &&
    architectures.includes((pod?.spec.nodeName ?? '').split('-')[0] ?? '')
  );
}

export function isGated(pod: PodNow | undefined): boolean {
  return (pod?.spec.schedulingGates ?? []).some(({ name }) => name === 'arch.example/scheduling-gate');
}

function summary(pod: PodNow | undefined): unknown {
  return pod && [pod.metadata?.name, pod.spec.nodeName, pod.spec.schedulingGates, pod.metadata?.annotations];
}

async function cleanUp(t: Test, scene: Scene): Promise<void> {
  const { cluster, pods } = scene;
  const { code, output } = await runArchwright(cluster, [
    'clean',
    `--kubeconfig=${cluster.kubeconfig}`,
    `--namespace=${ownNamespace}`,
    '--webhook-configuration=archwright',
  ]);
  t.equal(code, 0, 'clean ends well', { output });
  const list = async <T>(path: string): Promise<readonly T[]> =>
    (await cluster.client.get<{ items: T[] }>(path, { signal: patience() })).items;
  const webhooks = await list<{ metadata: { name: string } }>(
    '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  );
  t.same(
    webhooks.map(({ metadata }) => metadata.name),
    [],
    'no webhook configuration is left',
  );
  await pods.until('no gate is left', (objects) => ![...objects.values()].some(isGated));
  const nodes = await list<NodeObject>('/api/v1/nodes');
  t.same(
    nodes.flatMap(({ spec }) => (spec?.taints ?? []).filter(({ key }) => key.startsWith('arch.example/'))),
    [],
    'no taint is left',
  );
  for (const resource of ['secrets', 'configmaps'] as const) {
    const found = await list<{ metadata: { name: string } }>(
      `/api/v1/namespaces/${ownNamespace}/${resource}`,
    );
    const ours = found.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('archwright'));
    t.same(ours, [], `no ${resource} of ours are left`);
  }
}
