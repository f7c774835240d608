/** Taking our taints off all nodes, by one who leaves. */
import t, { type Test } from 'tap';
import { removeTaints, type RemoveTaintsOptions } from '../../../src/controller/taints/remove.ts';
import { createKubeClient } from '../../../src/kube/api/client.ts';
import { startKubeStore, type KubeStore } from '../../support/kube-store.ts';
import { annotation, key, putNode, taintOf } from './setup.ts';

async function start(t: Test): Promise<{ store: KubeStore; options: RemoveTaintsOptions; pauses: number[] }> {
  const store = await startKubeStore();
  const client = createKubeClient({ access: store.access, userAgent: 'test' });
  t.teardown(async () => {
    client.close();
    await store.close();
  });
  const pauses: number[] = [];
  const sleep = (ms: number): Promise<void> => Promise.resolve(void pauses.push(ms));
  return { store, pauses, options: { client, keys: [key], signal: AbortSignal.timeout(20_000), sleep } };
}

const spec = (store: KubeStore, node: string): unknown => store.get(`/api/v1/nodes/${node}`)?.['spec'];

void t.test('ours by record and by prefix; nothing else', async (t) => {
  const { store, options } = await start(t);
  const theirs = taintOf('arm64', 'kubernetes.io/arch');
  putNode(store, 'recorded', 'arm64', {
    taints: [theirs, taintOf('arm64', 'k')],
    annotations: { [annotation]: 'k' },
  });
  putNode(store, 'prefix', 'arm64', { taints: [taintOf('arm64')] });
  putNode(store, 'theirs', 'arm64', { taints: [theirs] });
  putNode(store, 'none', 'amd64');
  const dry = await removeTaints({ ...options, dryRun: true });
  t.same(dry.nodes.toSorted(), ['prefix', 'recorded']);
  t.same(store.writes(), []);
  const heard: string[] = [];
  const removed = await removeTaints({ ...options, progress: (node) => heard.push(node) });
  t.same(removed.nodes.toSorted(), ['prefix', 'recorded']);
  t.same(heard.toSorted(), ['prefix', 'recorded']);
  t.same(spec(store, 'recorded'), { taints: [theirs] });
  t.same(spec(store, 'prefix'), { taints: [] });
  t.same(spec(store, 'theirs'), { taints: [theirs] });
  t.same((await removeTaints(options)).nodes, [], 'once is enough');
});

void t.test('a storm is waited out; a refusal is told and stops no other', async (t) => {
  const { store, options, pauses } = await start(t);
  for (const name of ['a', 'b']) putNode(store, name, 'arm64', { taints: [taintOf('arm64')] });
  store.fault('GET /api/v1/nodes', { times: 2, status: 503 });
  store.fault('PATCH /api/v1/nodes/a', { times: 1, status: 429, retryAfter: 3 });
  store.fault('PATCH /api/v1/nodes/b', { status: 403 });
  const { nodes, failed } = await removeTaints(options);
  t.same(nodes, ['a']);
  t.match(failed, [{ node: 'b', error: { code: 'forbidden' } }]);
  t.same(pauses, [500, 1000, 3000]);
});

void t.test('an API server that stays away; a signal', async (t) => {
  const { store, options, pauses } = await start(t);
  store.fault('GET /api/v1/nodes', { status: 503 });
  await t.rejects(removeTaints(options), { code: 'unavailable' });
  t.equal(pauses.length, 5);
  const reason = new Error('stopped');
  await t.rejects(removeTaints({ ...options, signal: AbortSignal.abort(reason) }), reason);
});

void t.test('a node that goes meanwhile, and many pages', async (t) => {
  const { store, options } = await start(t);
  for (let n = 0; n < 1100; n += 1)
    putNode(store, `n${n}`, 'arm64', n % 500 === 499 ? { taints: [taintOf('arm64')] } : {});
  store.fault('PATCH /api/v1/nodes/n499', { times: 1, before: () => store.remove('/api/v1/nodes/n499') });
  const { nodes, failed } = await removeTaints(options);
  t.same(nodes.toSorted(), ['n499', 'n999']);
  t.same(failed, []);
});
