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

t.test('the report mentions that a tag now has the architecture', async (t) => {
  const image = `${(await shop(t)).host}/both:1`;
  const { store, report } = await cluster(t, { image, lost: [], gained: ['linux/arm64'] });
  putPod(store, 'shop/db-0', [image], db);
  const verdict = async (...args: string[]) => {
    const { code, out } = await report('-o', 'json', ...args);
    const { workloads } = JSON.parse(out) as { workloads: { verdict: string; why: string }[] };
    return [code, ...workloads.flatMap(({ verdict, why }) => [verdict, why])];
  };
  t.strictSame(await verdict(), [0, 'yes', `${image} now has arm64`]);
  t.strictSame(await verdict('-a', 'amd64'), [0, 'yes', '']);
  store.fault(/configmaps/, { status: 403 });
  t.strictSame(await verdict(), [0, 'yes', ''], 'without the permission to read the notes');
});
