/** Requests to a real registry (distribution): unchanged, and when a tag loses an architecture. */
import { EventEmitter, once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { createCa } from '../../support/certificates.ts';
import { multiArch, type Content } from '../../support/registry/content.ts';
import { distributionProgram } from '../programs/helm.ts';
import { push } from '../registry/push.ts';
import { startRegistry } from '../registry/servers.ts';
import { startCluster, type Cluster } from './harness.ts';
import { startImages } from './archwright/images.ts';
import {
  nodeOf,
  podOf,
  podPath,
  waitForEvent,
  workload,
  type EventNow,
  type PodNow,
} from './control-plane/pods.ts';
import { startArchwright } from './archwright/start.ts';

const intervalMs = 10_000;
const repository = 'shop/web';

/** A real registry with a log of its requests. */
async function startDistribution(cluster: Cluster) {
  const ca = await createCa('distribution');
  const requests: { readonly method: string; readonly at: number }[] = [];
  const arrivals = new EventEmitter();
  const registry = await startRegistry({
    program: distributionProgram(),
    directory: join(cluster.directory, 'distribution'),
    tls: await ca.issue({ cn: 'registry', ip: ['127.0.0.1'] }),
    ca: ca.cert,
    auth: { kind: 'none' },
    onRequest: (line) => {
      const [, method = ''] = /"(\w+) \/v2\/shop\/web\/manifests\//.exec(line) ?? [];
      if (method !== '') requests.push({ method, at: performance.now() });
      arrivals.emit('request');
    },
  });
  cluster.onStop(() => registry.stop());
  return {
    image: `${registry.host}/${repository}:1`,
    ca: ca.cert,
    push: (content: Content): Promise<Content> =>
      push({ host: registry.host, ca: ca.cert }, repository, '1', content),
    /** Requests for manifests with this method; waits for at least `count` of them. */
    received: async (method: string, count = 0) => {
      const signal = AbortSignal.timeout(10 * intervalMs);
      for (;;) {
        const found = requests.filter((each) => each.method === method);
        if (found.length >= count) return found;
        await once(arrivals, 'request', { signal });
      }
    },
  };
}

/** The digest that a kubelet reports; kwok reports none. */
async function pull(cluster: Cluster, pod: PodNow, image: string, { digest }: Content): Promise<void> {
  const imageID = `${image.slice(0, image.lastIndexOf(':'))}@${digest}`;
  const container = { name: 'app', image, imageID, ready: true, restartCount: 0, state: { running: {} } };
  const path = `${podPath(pod.metadata?.name ?? '')}/status`;
  await cluster.patch(path, { type: 'strategic', body: { status: { containerStatuses: [container] } } });
}

void t.test('a tag that is pushed again is detected with few requests', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1, arm64: 1 } }, t);
  const registry = await startDistribution(cluster);
  const { image } = registry;
  const first = await registry.push(multiArch(['linux/amd64', 'linux/arm64']));
  const images = await startImages(cluster);
  const caFile = join(cluster.directory, 'all-registries.crt');
  await writeFile(caFile, `${await readFile(images.settings['ca-files'], 'utf8')}\n${registry.ca}`);
  const settings = { 'drift-interval': `${intervalMs / 1000}s` };
  await startArchwright(cluster, { images: { ...images, settings: { 'ca-files': caFile } } }, settings);
  const pods = await cluster.watch<PodNow>('/api/v1/pods', t);
  const events = await cluster.watch<EventNow>('/api/v1/namespaces/default/events', t);

  await cluster.create(workload('Deployment', 'web', { image }, { replicas: 2 }));
  const running = await pods.until('pods that run', (all) => {
    const found = [...all.values()].filter(({ status }) => status?.phase === 'Running');
    return found.length === 2 && found;
  });
  const gets = (await registry.received('GET')).length;
  for (const pod of running) await pull(cluster, pod, image, first);
  const [one, two] = await registry.received('HEAD', 2);
  const betweenMs = (two?.at ?? 0) - (one?.at ?? 0);
  t.ok(betweenMs > intervalMs / 2, `${betweenMs} ms between two checks`);
  t.equal((await registry.received('GET')).length, gets, 'no manifest is read');

  const second = await registry.push(multiArch(['linux/amd64'], { label: 'second' }));
  const event = await waitForEvent(events, 'ImageLostArchitecture', ['Deployment', /^web$/], 6 * intervalMs);
  t.match(event.message, /lost arm64: its tag was pushed again/);
  t.ok(event.message?.includes(second.digest));
  await cluster.create(podOf('next', image));
  t.equal(await nodeOf(cluster, 'next'), 'amd64-0');
  t.equal((await registry.received('GET')).length, gets + 1, 'the new index, once');
});
