import t, { type Test } from 'tap';
import { formatDrifted, keyOfDrifted, type DriftedTag } from '../../../src/images/sources/drifted-tags.ts';
import { putPod, shop, startCluster } from './cluster.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const since = Date.parse('2026-11-20T08:00:00Z');
const notesPath = '/api/v1/namespaces/archwright/configmaps/archwright-drift';

async function cluster(t: Test, ...tags: readonly Pick<DriftedTag, 'image' | 'lost' | 'gained'>[]) {
  const started = await startCluster(t);
  const data = tags.map((tag) => [keyOfDrifted(tag.image), formatDrifted({ ...tag, digest, since })]);
  started.store.put(notesPath, { data: Object.fromEntries(data) as object });
  return started;
}

const db = { owner: ['apps/v1', 'StatefulSet', 'db'] } as const;

t.test('--drift lists lost and gained architectures of tags by workload, without lookups', async (t) => {
  const { store, report } = await cluster(
    t,
    { image: 'docker.io/library/nginx:1.29', lost: ['linux/arm64'], gained: ['linux/arm/v7'] },
    { image: 'registry.invalid/app:2', lost: [], gained: ['linux/arm64', 'windows/amd64'] },
    { image: 'registry.invalid/unused:1', lost: ['linux/arm64'], gained: [] },
  );
  putPod(store, 'shop/db-0', ['nginx:1.29', 'registry.invalid/other:1'], db);
  putPod(store, 'shop/db-1', ['docker.io/library/nginx:1.29'], db);
  putPod(store, 'bank/alone', ['registry.invalid/app:2', 'NOT/an image']);
  const table = await report('--drift');
  t.same(table.err, '');
  t.same(table.out.split('\n'), [
    'NAMESPACE  WORKLOAD        IMAGE                         CHANGE                       SINCE',
    'shop       StatefulSet/db  docker.io/library/nginx:1.29  lost arm64, now has arm/v7   2026-11-20T08:00:00Z',
    'bank       Pod/alone       registry.invalid/app:2        now has arm64 windows/amd64  2026-11-20T08:00:00Z',
    '',
  ]);
  t.equal(table.code, 0);

  const csv = await report('--drift', '-o', 'csv', '-n', 'bank');
  t.same(csv.out.split('\r\n'), [
    'namespace,kind,name,image,lost,gained,digest,since',
    `bank,Pod,alone,registry.invalid/app:2,,linux/arm64 windows/amd64,${digest},2026-11-20T08:00:00Z`,
    '',
  ]);
  const json = await report('--drift', '-o', 'json', '-n', 'shop');
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
  const { store, report } = await cluster(t);
  store.remove(notesPath);
  putPod(store, 'shop/db-0', ['nginx:1.29'], db);
  t.match(await report('--drift'), { code: 0, out: /^NAMESPACE.*\n$/ });
  store.fault(/configmaps/, { status: 403 });
  t.match(await report('--drift'), {
    code: 3,
    err: /no permission to list the ConfigMap archwright-drift/,
  });
});

t.test('the report mentions that a tag now has the architecture', async (t) => {
  const image = `${(await shop(t)).host}/both:1`;
  const { store, report } = await cluster(t, { image, lost: [], gained: ['linux/arm64'] });
  putPod(store, 'shop/db-0', [image], db);
  const found = await report('-o', 'json');
  t.match(JSON.parse(found.out), { workloads: [{ verdict: 'yes', why: `${image} now has arm64` }] });
  const other = await report('-o', 'json', '-a', 'amd64');
  t.match(JSON.parse(other.out), { workloads: [{ verdict: 'yes', why: '' }] });
});
