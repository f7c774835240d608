/** A cluster of many workloads of every kind, and the registry of their images. */
import { concurrently } from '../../src/async/concurrently.ts';
import type { Cluster } from '../../test/e2e/cluster/harness.ts';
import { image, multiArch } from '../../test/support/registry/content.ts';
import type { TestRegistry } from '../../test/support/registry/server.ts';

export const workloads = 5000;
export const namespaces = 100;
export const images = 300;
/** The largest clusters have more, but each node's DaemonSet pods are all alike. */
export const nodes = 40;
/** Creates under way at a time. */
const concurrency = 16;

const login = { username: 'puller', password: 'bench-password' };
export const users = { [login.username]: login.password };

/** Every fifth image is amd64 only; half of those have a newer tag for both. Every 60th does not exist. */
export function pushImages(registry: TestRegistry): void {
  for (let index = 0; index < images; index += 1) {
    const repository = repositoryOf(index);
    const both = multiArch(['linux/amd64', 'linux/arm64'], { label: repository });
    const isSingle = index % 5 === 0;
    if (index % 60 !== 7)
      registry.push(repository, '1.0.0', isSingle ? image('linux/amd64', { label: repository }) : both);
    if (isSingle && index % 2 === 0) registry.push(repository, '1.1.0', both);
  }
}

function repositoryOf(index: number): string {
  return `team-${index % 20}/app-${index}`;
}

/** With a pull secret in each. */
export async function createNamespaces(cluster: Cluster, host: string): Promise<void> {
  const auth = Buffer.from(`${login.username}:${login.password}`).toString('base64');
  const config = JSON.stringify({ auths: { [host]: { auth } } });
  await concurrently([...Array(namespaces).keys()], concurrency, async (index) => {
    const namespace = namespaceOf(index);
    await cluster.createNamespace(namespace);
    await cluster.post(`/api/v1/namespaces/${namespace}/secrets`, {
      metadata: { name: 'registry' },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': Buffer.from(config).toString('base64') },
    });
  });
}

/** @returns how many pods they will have */
export async function createWorkloads(cluster: Cluster, host: string): Promise<number> {
  const counts = await concurrently([...Array(workloads).keys()], concurrency, (index) =>
    createWorkload(cluster, index, host),
  );
  return counts.reduce((sum, each) => sum + each, 0);
}

async function createWorkload(cluster: Cluster, index: number, host: string): Promise<number> {
  const namespace = namespaceOf(index % namespaces);
  const name = `service-${index}`;
  const metadata = { name };
  const template = { metadata: { labels: { app: name } }, spec: podSpec(index, host) };
  const selector = { matchLabels: { app: name } };
  const at = (group: string, resource: string): string =>
    `/apis/${group}/namespaces/${namespace}/${resource}`;
  const kind = index % 50;
  if (index % 500 === 499) {
    await cluster.post(at('apps/v1', 'daemonsets'), { metadata, spec: { selector, template } });
    return nodes;
  }
  const jobSpec = { template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } } };
  if (kind >= 44) {
    const schedule = { schedule: '0 0 1 1 *', jobTemplate: { spec: jobSpec } };
    const path = at('batch/v1', 'cronjobs');
    const { metadata: made } = await cluster.post<{ readonly metadata: { readonly uid: string } }>(path, {
      metadata,
      spec: schedule,
    });
    // As `kubectl create job --from`.
    const owner = { apiVersion: 'batch/v1', kind: 'CronJob', name, uid: made.uid, controller: true };
    await cluster.post(at('batch/v1', 'jobs'), {
      metadata: { name: `${name}-1`, ownerReferences: [owner] },
      spec: jobSpec,
    });
    return 1;
  }
  if (kind >= 39) {
    await cluster.post(at('batch/v1', 'jobs'), { metadata, spec: jobSpec });
    return 1;
  }
  const replicas = index % 10 === 0 ? 3 : 1;
  const resource = kind >= 34 ? 'statefulsets' : 'deployments';
  await cluster.post(at('apps/v1', resource), { metadata, spec: { replicas, selector, template } });
  return replicas;
}

/** As a chart writes it; every 30th is pinned by a node selector, every 70th by its affinity. */
function podSpec(index: number, host: string): object {
  const name = 'kubernetes.io/arch';
  const terms = [{ matchExpressions: [{ key: name, operator: 'In', values: ['amd64'] }] }];
  const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
  const container = (role: string, of: number): object => ({
    name: role,
    image: `${host}/${repositoryOf(of % images)}:1.0.0`,
    env: Array.from({ length: 12 }, (_, at) => ({ name: `SETTING_${at}`, value: `value-${index}-${at}` })),
    ports: [{ containerPort: 8080 }],
    resources: { requests: { cpu: `${10 + (index % 8) * 10}m`, memory: `${32 + (index % 16) * 32}Mi` } },
    readinessProbe: { httpGet: { path: '/ready', port: 8080 } },
  });
  return {
    terminationGracePeriodSeconds: 0,
    imagePullSecrets: [{ name: 'registry' }],
    containers: [container('app', index), ...(index % 4 === 0 ? [container('sidecar', 3)] : [])],
    ...(index % 30 === 11 && { nodeSelector: { [name]: 'amd64' } }),
    ...(index % 70 === 12 && { affinity: { nodeAffinity: required } }),
  };
}

function namespaceOf(index: number): string {
  return `team-${index}`;
}
