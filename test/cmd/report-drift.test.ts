import t, { type Test } from 'tap';
import { formatDrifted, keyOfDrifted, type DriftedTag } from '../../src/images/sources/drifted-tags.ts';
import { startKubeStore, type KubeStore } from '../support/kube-store.ts';
import { multiArch } from '../support/registry/content.ts';
import { run, type Result } from './run.ts';
import { files, kubeconfig, registry } from './world.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const since = Date.parse('2026-11-20T08:00:00Z');
const notesPath = '/api/v1/namespaces/archwright/configmaps/archwright-drift';

async function cluster(
  t: Test,
  ...tags: readonly Pick<DriftedTag, 'image' | 'lost' | 'gained'>[]
): Promise<KubeStore> {
  const store = await startKubeStore();
  t.teardown(() => store.close());
  const data = tags.map(
    (tag) => [keyOfDrifted(tag.image), formatDrifted({ ...tag, digest, since })] as const,
  );
  store.put(notesPath, { data: Object.fromEntries(data) });
  return store;
}

function putPod(store: KubeStore, namespace: string, name: string, ...images: readonly string[]): void {
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    name: 'db',
    uid: `db-${namespace}`,
    controller: true,
  };
  store.put(`/api/v1/namespaces/${namespace}/pods/${name}`, {
    metadata: { ...(name.startsWith('db') && { ownerReferences: [owner] }) },
    spec: { nodeName: 'a1', containers: images.map((image, index) => ({ name: `c${index}`, image })) },
    status: { phase: 'Running' },
  });
}

function report(t: Test, store: KubeStore, ...args: string[]): Promise<Result> {
  const { config } = files(t, { config: kubeconfig(store.access.server) });
  return run(['report', '--kubeconfig', config, ...args]);
}

t.test('--drift lists what tags lost and gained, by workload, without looking up images', async (t) => {
  const store = await cluster(
    t,
    { image: 'docker.io/library/nginx:1.29', lost: ['linux/arm64'], gained: ['linux/arm/v7'] },
    { image: 'registry.invalid/app:2', lost: [], gained: ['linux/arm64', 'windows/amd64'] },
    { image: 'registry.invalid/unused:1', lost: ['linux/arm64'], gained: [] },
  );
  putPod(store, 'shop', 'db-0', 'nginx:1.29', 'registry.invalid/other:1');
  putPod(store, 'shop', 'db-1', 'docker.io/library/nginx:1.29');
  putPod(store, 'bank', 'alone', 'registry.invalid/app:2', 'NOT/an image');
  const table = await report(t, store, '--drift');
  t.same(table.err, '');
  t.same(table.out.split('\n'), [
    'NAMESPACE  WORKLOAD        IMAGE                         CHANGE                       SINCE',
    'shop       StatefulSet/db  docker.io/library/nginx:1.29  lost arm64, now has arm/v7   2026-11-20T08:00:00Z',
    'bank       Pod/alone       registry.invalid/app:2        now has arm64 windows/amd64  2026-11-20T08:00:00Z',
    '',
  ]);
  t.equal(table.code, 0);

  const csv = await report(t, store, '--drift', '-o', 'csv', '-n', 'bank');
  t.same(csv.out.split('\r\n'), [
    'namespace,kind,name,image,lost,gained,digest,since',
    `bank,Pod,alone,registry.invalid/app:2,,linux/arm64 windows/amd64,${digest},2026-11-20T08:00:00Z`,
    '',
  ]);
  const json = await report(t, store, '--drift', '-o', 'json', '-n', 'shop');
  t.match(JSON.parse(json.out), {
    drift: [
      {
        namespace: 'shop',
        kind: 'StatefulSet',
        name: 'db',
        lost: ['linux/arm64'],
        since: '2026-11-20T08:00:00Z',
      },
    ],
  });
});

t.test('--drift without notes, and without the permission to read them', async (t) => {
  const store = await cluster(t);
  store.remove(notesPath);
  putPod(store, 'shop', 'db-0', 'nginx:1.29');
  t.match(await report(t, store, '--drift'), { code: 0, out: /^NAMESPACE.*\n$/ });
  store.fault(/configmaps/, { status: 403 });
  t.match(await report(t, store, '--drift'), {
    code: 3,
    err: /no permission to list the ConfigMap archwright-drift/,
  });
});

t.test('the report says that a tag now has the architecture', async (t) => {
  const open = await registry(t);
  open.push('app', '1', multiArch(['linux/amd64', 'linux/arm64']));
  const image = `${open.host}/app:1`;
  const store = await cluster(t, { image, lost: [], gained: ['linux/arm64'] });
  putPod(store, 'shop', 'db-0', image);
  const found = await report(t, store, '-o', 'json');
  t.match(JSON.parse(found.out), { workloads: [{ verdict: 'yes', why: `${image} now has arm64` }] });
  const other = await report(t, store, '-o', 'json', '-a', 'amd64');
  t.match(JSON.parse(other.out), { workloads: [{ verdict: 'yes', why: '' }] });
});
