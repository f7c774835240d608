import t from 'tap';
import type { Query } from '../../src/kube/api/transport.ts';
import { connectedStore, failure } from '../kube/support.ts';
import { kubeContract } from './kube-contract.ts';
import { like } from './like.ts';
import { neverAborted } from './never-aborted.ts';

const pods = '/api/v1/namespaces/team/pods';

void t.test('the store keeps the contract', async (t) => {
  await kubeContract(t, (await connectedStore(t)).client);
});

void t.test('terminating pods on a node stay', async (t) => {
  const { store, client } = await connectedStore(t, { gracefulPods: true });
  store.put(`${pods}/on-a-node`, { spec: { nodeName: 'n' } });
  store.put(`${pods}/waiting`, { spec: {} });
  for (const name of ['on-a-node', 'waiting'])
    await client.delete(`${pods}/${name}`, { signal: neverAborted });
  like(t, store.list(pods), [{ metadata: { name: 'on-a-node', deletionTimestamp: /T/ } }]);
});

void t.test('tests end watches, send bookmarks, and drop versions', async (t) => {
  const { store, client } = await connectedStore(t);
  async function watch(query: Query): Promise<string[]> {
    const options = { signal: neverAborted, idleMs: 5_000, query: { watch: true, ...query } };
    const seen: string[] = [];
    for await (const line of client.lines('/api/v1/pods', options))
      seen.push((JSON.parse(line) as { readonly type: string }).type);
    return seen;
  }
  for (const name of ['a', 'b']) store.put(`${pods}/${name}`, {});
  const resourceVersion = store.version();
  const watches = [watch({ resourceVersion, allowWatchBookmarks: true }), watch({ resourceVersion })];
  await store.until(() => store.watches('/api/v1/pods') === 2);
  store.put('/api/v1/nodes/n', {});
  store.remove(`${pods}/b`);
  store.put(`${pods}/c`, {});
  store.bookmark();
  store.cutWatches('end');
  t.strictSame(await Promise.all(watches), [
    ['DELETED', 'ADDED', 'BOOKMARK'],
    ['DELETED', 'ADDED'],
  ]);
  const list = (query: Query): Promise<{ readonly metadata: { readonly continue: string } }> =>
    client.get('/api/v1/pods', { signal: neverAborted, query });
  const { metadata } = await list({ limit: 1 });
  store.compact();
  t.equal((await failure(list({ limit: 1, continue: metadata.continue }))).code, 'gone');
  t.strictSame(await watch({ resourceVersion }), ['ERROR']);
});
