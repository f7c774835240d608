/**
 * Memory of a real controller while a tenant creates objects as large and as many as the API server accepts:
 * RSS stays below the chart's limit, and the gated pod of another tenant is still placed.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createPki } from '../../fleet/support.ts';
import { until } from '../../support/until.ts';
import { isExhaustive } from '../../support/exhaustive.ts';
import { startKubeStore } from '../../support/kube-store.ts';
import { multiArch } from '../../support/registry/content.ts';
import { measured, MiB, patienceMs } from './measured.ts';
import { directory, kubeconfig, registry } from '../../cmd/world.ts';

const gate = { name: 'arch.example/scheduling-gate' };
/** etcd takes requests of 1.5 MiB. */
const objectBytes = 1.4 * MiB;

interface Shape {
  readonly count: number;
  readonly kind?: 'waiting' | 'running' | 'config';
  readonly metadata?: (index: number) => object;
  readonly spec?: (index: number) => object;
  readonly status?: (index: number) => object;
}

/** Distinct texts of this length. */
const texts = (count: number, length: number, index: number): string[] =>
  Array.from({ length: count }, (_, each) => `${index}-${each}-`.padEnd(length, 'v'));
const record = (keys: readonly string[], value = ''): Record<string, string> =>
  Object.fromEntries(keys.map((key) => [key, value]));
const affinity = (values: readonly string[]) => ({
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values }] }],
    },
  },
});
const images = (index: number, count: number) =>
  Array.from({ length: count }, (_, each) => {
    return { name: `c${each}`, image: `127.0.0.1:9/tenant-${index}/${'x'.repeat(150)}-${each}:v1` };
  });
const crashed = (name: string, message: string) => ({
  name,
  image: 'x',
  imageID: `r.example/x@sha256:${'a'.repeat(64)}`,
  restartCount: 9,
  state: { waiting: { reason: 'CrashLoopBackOff', message } },
  lastState: { terminated: { exitCode: 255, reason: 'Error', message } },
});

const attacks: Readonly<Record<string, readonly Shape[]>> = {
  'large gated pods': [
    { count: 100, spec: (index) => ({ affinity: affinity(texts(objectBytes / 1024, 1020, index)) }) },
    { count: 20, metadata: (index) => ({ labels: record(texts(60_000, 15, index)) }) },
    {
      count: 400,
      metadata: (index) => ({
        annotations: record([`arch.example/x-${index}`], 'x'.repeat(256 * 1024 - 100)),
      }),
    },
    { count: 100, spec: (index) => ({ containers: images(index, 1000) }) },
  ],
  // Each has 8.4 MiB as JSON.
  'pods with characters that JSON escapes': [
    {
      count: 60,
      spec: (index) => ({
        containers: [{ ...images(index, 1)[0], env: [{ name: 'X', value: '\u0001'.repeat(objectBytes) }] }],
      }),
    },
  ],
  'many gated pods': [{ count: 4000, spec: (index) => ({ nodeSelector: record(texts(400, 40, index)) }) }],
  'running pods': [
    {
      count: 150,
      kind: 'running',
      spec: (index) => ({ affinity: affinity(texts(objectBytes / 1024, 1020, index)) }),
    },
    {
      count: 2000,
      kind: 'running',
      metadata: (index) => ({ labels: record(texts(100, 60, index)) }),
      status: (index) => ({
        phase: 'Running',
        containerStatuses: Array.from({ length: 4 }, (_, each) =>
          crashed(`c${each}`, `exec /${index}-${each}: exec format error ${'m'.repeat(4000)}`),
        ),
      }),
    },
  ],
  'custom resources': [
    {
      count: 200,
      kind: 'config',
      metadata: () => ({ annotations: { x: 'x'.repeat(200 * 1024) } }),
      spec: (index) => ({ labelSelector: { matchLabels: record(texts(objectBytes / 2048, 1020, index)) } }),
    },
  ],
};

async function world(t: Test) {
  const dir = directory(t);
  const host = await registry(t);
  const store = await startKubeStore();
  t.teardown(() => store.close());
  const pki = await createPki(t);
  writeFileSync(join(dir, 'registry.pem'), host.ca);
  writeFileSync(join(dir, 'config'), kubeconfig(store.access.server));
  for (const name of ['good', 'tenant']) store.put(`/api/v1/namespaces/${name}`, {});
  for (const architecture of ['amd64', 'arm64'])
    store.put(`/api/v1/nodes/${architecture}`, {
      status: {
        nodeInfo: { architecture, operatingSystem: 'linux', containerRuntimeVersion: 'containerd://2.1' },
      },
    });
  const trust = ['--state-dir', dir, '--ca-files', join(dir, 'registry.pem')];
  const agent = await measured(t, 'agent', ['--tls-dir', pki.serverDir, ...trust]);
  const cluster = ['--kubeconfig', join(dir, 'config'), '--namespace', 'archwright'];
  const agents = ['--agents', agent.url, '--agent-tls-dir', pki.clientDir];
  const issuer = ['--certificates', 'external'];
  const controller = await measured(t, 'controller', [...cluster, ...agents, ...issuer]);
  let pods = 0;
  const survived = async (t: Test, what: string): Promise<void> => {
    const name = `good-${(pods += 1)}`;
    host.push(name, 'v1', multiArch(['linux/arm64']));
    const path = `/api/v1/namespaces/good/pods/${name}`;
    const containers = [{ name: 'c', image: `${host.host}/${name}:v1`, imagePullPolicy: 'IfNotPresent' }];
    store.put(path, { spec: { containers, schedulingGates: [gate] } });
    const placed = (): boolean => {
      controller.peakBytes();
      const { spec } = store.get(path) as { spec: { affinity?: object; schedulingGates?: object[] } };
      return spec.affinity !== undefined && !spec.schedulingGates?.length;
    };
    await until(placed, 'a good pod is placed', 2 * patienceMs);
    const { peakBytes, limit } = controller;
    t.comment(`${what}: ${Math.round(peakBytes() / MiB)} of ${limit / MiB} MiB`);
    t.ok(peakBytes() < limit, what);
  };
  await survived(t, 'no attack');
  return { store, survived };
}

type Store = Awaited<ReturnType<typeof startKubeStore>>;

const tenant = {
  waiting: (name: string) => `/api/v1/namespaces/tenant/pods/waiting-${name}`,
  running: (name: string) => `/api/v1/namespaces/tenant/pods/running-${name}`,
  config: (name: string) => `/apis/arch.example/v1alpha1/namespaces/tenant/podplacementconfigs/${name}`,
};

/** Creates the objects; a pause for each lets the store send them. */
async function create(store: Store, id: number, { count, kind = 'waiting', ...shape }: Shape): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const containers = [{ name: 'c', image: '127.0.0.1:9/tenant/app:v1', imagePullPolicy: 'IfNotPresent' }];
    const pod = { containers, ...(kind === 'running' ? { nodeName: 'amd64' } : { schedulingGates: [gate] }) };
    store.put(tenant[kind](`${id}-${index}`), {
      metadata: { ...shape.metadata?.(index) },
      spec: { ...(kind !== 'config' && pod), ...shape.spec?.(index) },
      ...(shape.status && { status: shape.status(index) }),
    });
    await new Promise(setImmediate);
  }
}

for (const [what, shapes] of Object.entries(attacks)) {
  t.test(what, { skip: isExhaustive ? false : 'runs with npm run e2e:attack:full' }, async (t) => {
    const { store, survived } = await world(t);
    for (const [id, shape] of shapes.entries()) await create(store, id, shape);
    await survived(t, what);
    // A list holds the old objects and the new ones.
    store.compact();
    store.cutWatches('end');
    await survived(t, `${what}, listed again`);
  });
}
