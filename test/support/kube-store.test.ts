import t, { type Test } from 'tap';
import { createKubeClient, type KubeClient, type Patch } from '../../src/kube/api/client.ts';
import { KubeError } from '../../src/kube/api/errors.ts';
import { startKubeStore, type KubeStore, type KubeStoreOptions } from './kube-store.ts';
import { neverAborted } from './never-aborted.ts';
import { like } from './like.ts';

const pods = '/api/v1/namespaces/team/pods';
const nodes = '/api/v1/nodes';

async function start(t: Test, options?: KubeStoreOptions): Promise<{ store: KubeStore; client: KubeClient }> {
  const store = await startKubeStore(options);
  const client = createKubeClient({ access: store.access, userAgent: 'test', timeoutMs: 5_000 });
  t.teardown(async () => {
    client.close();
    await store.close();
  });
  return { store, client };
}

async function failure(promise: Promise<unknown>): Promise<KubeError> {
  const error = await promise.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (error instanceof KubeError) return error;
  throw new Error('no KubeError');
}

interface List {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly { readonly kind?: string; readonly metadata: { readonly name: string } }[];
}

const namesOf = (list: List): string[] => list.items.map((item) => item.metadata.name);

void t.test(
  'lists have pages, selectors and all namespaces, and items of built-in kinds have no kind',
  async (t) => {
    const { store, client } = await start(t);
    for (const [name, node, labels] of [
      ['a', undefined, { app: 'x' }],
      ['b', 'n1', { app: 'y' }],
      ['c', 'n2', {}],
    ] as const) {
      const spec = node === undefined ? {} : { nodeName: node };
      store.put(`${pods}/${name}`, { kind: 'Pod', metadata: { labels }, spec });
    }
    store.put('/api/v1/namespaces/other/pods/d', { spec: { nodeName: 'n1' } });
    const list = (query: Record<string, string | number>): Promise<List> =>
      client.get<List>('/api/v1/pods', { signal: neverAborted, query });
    const cases: [Record<string, string>, string[]][] = [
      [{}, ['d', 'a', 'b', 'c']],
      [{ fieldSelector: 'spec.nodeName=' }, ['a']],
      [{ fieldSelector: 'spec.nodeName!=' }, ['d', 'b', 'c']],
      [{ fieldSelector: 'spec.nodeName=n1,metadata.name=b' }, ['b']],
      [{ labelSelector: 'app=x' }, ['a']],
      [{ labelSelector: 'app!=x' }, ['d', 'b', 'c']],
      [{ labelSelector: 'app' }, ['a', 'b']],
      [{ labelSelector: '!app' }, ['d', 'c']],
      [{ labelSelector: 'app in (x, y),app notin (x)' }, ['b']],
    ];
    for (const [query, names] of cases)
      t.strictSame(namesOf(await list(query)), names, JSON.stringify(query));
    const first = await list({ limit: 3 });
    store.put(`${pods}/late`, {});
    const second = await list({ limit: 3, continue: first.metadata.continue ?? '' });
    t.strictSame(
      [...namesOf(first), ...namesOf(second)],
      ['d', 'a', 'b', 'c'],
      'all pages of a list are of one moment',
    );
    t.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
    t.equal(second.metadata.continue, undefined);
    t.equal(first.items[1]?.kind, undefined);
    const { continue: token = '' } = (await list({ limit: 1 })).metadata;
    store.compact();
    t.equal((await failure(list({ limit: 1, continue: token }))).code, 'gone');
    t.equal((await failure(list({ fieldSelector: 'spec.hostname=x' }))).code, 'bad-answer', '400');
  },
);

void t.test('each kind of patch works, with preconditions, and with a separate status', async (t) => {
  const { store, client } = await start(t);
  const path = `${pods}/a`;
  const patch = (body: Patch, at = path): Promise<unknown> =>
    client.patch(at, body, { signal: neverAborted });
  const { metadata } = store.put(path, {
    metadata: { labels: { a: '1' } },
    spec: { x: [1] },
    status: { ok: 1 },
  });
  await patch({ type: 'json', body: [{ op: 'add', path: '/spec/x/-', value: 2 }] });
  like(t, store.get(path), { spec: { x: [1, 2] }, metadata: { generation: 2 } });
  const before = store.version();
  await patch({ type: 'merge', body: { metadata: { labels: { a: '1' } } } });
  t.equal(store.version(), before, 'a patch without changes creates no version');
  await patch({ type: 'merge', body: { metadata: { labels: { a: null, b: '2' } }, status: { ok: 2 } } });
  t.strictSame(store.get(path)?.metadata.labels, { b: '2' });
  t.strictSame(store.get(path)?.status, { ok: 1 });
  const condition = (type: string, status: string): object => ({
    status: { conditions: [{ type, status }] },
  });
  await patch({ type: 'strategic', body: condition('A', 'True') }, `${path}/status`);
  await patch({ type: 'strategic', body: condition('B', 'True') }, `${path}/status`);
  await patch({ type: 'strategic', body: condition('A', 'False') }, `${path}/status`);
  t.strictSame(store.get(path)?.status, {
    ok: 1,
    conditions: [
      { type: 'A', status: 'False' },
      { type: 'B', status: 'True' },
    ],
  });
  const stale = metadata.resourceVersion;
  const conflicts: Patch[] = [
    { type: 'merge', body: { metadata: { resourceVersion: stale, labels: { c: '3' } } } },
    { type: 'json', body: [{ op: 'replace', path: '/metadata/resourceVersion', value: stale }] },
    { type: 'merge', body: { metadata: { uid: 'another' } } },
  ];
  for (const body of conflicts) t.equal((await failure(patch(body))).code, 'conflict');
  const broken: Patch = { type: 'json', body: [{ op: 'test', path: '/spec/x', value: 0 }] };
  like(t, await failure(patch(broken)), { code: 'invalid', message: /error in our request/ });
  t.equal((await failure(patch(broken, `${pods}/none`))).code, 'not-found');
  const custom = '/apis/arch.example/v1alpha1/clusterpodplacementconfigs/cluster';
  store.put(custom, {});
  like(t, await failure(patch({ type: 'strategic', body: {} }, custom)), { message: /415/ });
});

void t.test('server-side apply creates, merges, and removes omitted fields', async (t) => {
  const { store, client } = await start(t);
  const path = `${nodes}/n`;
  const apply = (labels: Record<string, string>, fieldManager = 'us'): Promise<unknown> =>
    client.patch(
      path,
      { type: 'apply', body: { metadata: { labels } }, fieldManager },
      { signal: neverAborted },
    );
  await apply({ a: '1', b: '1' });
  await apply({ c: '1' }, 'them');
  await apply({ b: '2' });
  t.strictSame(store.get(path)?.metadata.labels, { b: '2', c: '1' });
  like(t, store.get(path), { metadata: { managedFields: [{ manager: 'them' }, { manager: 'us' }] } });
});

void t.test('deletion respects preconditions, finalizers and terminating pods', async (t) => {
  const { store, client } = await start(t, { gracefulPods: true });
  const { metadata } = store.put(`${nodes}/n`, { metadata: { finalizers: ['us/x'] } });
  const gone = (path: string, more: object = {}): Promise<void> =>
    client.delete(path, { signal: neverAborted, ...more });
  t.equal((await failure(gone(`${nodes}/n`, { uid: 'another' }))).code, 'conflict');
  t.equal((await failure(gone(`${nodes}/n`, { resourceVersion: '1' }))).code, 'conflict');
  await gone(`${nodes}/n`, { uid: metadata.uid, resourceVersion: metadata.resourceVersion });
  t.match(store.get(`${nodes}/n`)?.metadata.deletionTimestamp, /T/);
  await client.patch(
    `${nodes}/n`,
    { type: 'merge', body: { metadata: { finalizers: null } } },
    { signal: neverAborted },
  );
  t.equal(store.get(`${nodes}/n`), undefined);
  store.put(`${pods}/on-a-node`, { spec: { nodeName: 'n' } });
  store.put(`${pods}/waiting`, { spec: {} });
  await gone(`${pods}/on-a-node`);
  await gone(`${pods}/waiting`);
  like(t, store.list(pods), [{ metadata: { name: 'on-a-node', deletionTimestamp: /T/ } }]);
  t.equal(store.list(pods).length, 1);
  t.equal((await failure(gone(`${pods}/waiting`))).code, 'not-found');
});

interface Event {
  readonly type: string;
  readonly object: { readonly metadata?: { readonly name?: string; readonly resourceVersion?: string } };
}

function watch(
  client: KubeClient,
  query: Record<string, string>,
): { seen: string[]; ended: Promise<unknown> } {
  const seen: string[] = [];
  const read = async (): Promise<void> => {
    const options = { signal: neverAborted, idleMs: 5_000, query: { watch: true, ...query } };
    for await (const line of client.lines('/api/v1/pods', options)) {
      const { type, object } = JSON.parse(line) as Event;
      seen.push(`${type} ${object.metadata?.name ?? ''}`.trim());
    }
  };
  return { seen, ended: read().catch((cause: unknown) => cause) };
}

void t.test(
  'a watch continues from a version, and sends objects that enter or leave its selector',
  async (t) => {
    const { store, client } = await start(t);
    store.put(`${pods}/before`, { spec: {} });
    const resourceVersion = String(store.version());
    store.put(`${pods}/a`, { spec: {} });
    const waiting = watch(client, {
      resourceVersion,
      fieldSelector: 'spec.nodeName=',
      allowWatchBookmarks: 'true',
    });
    const bound = watch(client, { resourceVersion, fieldSelector: 'spec.nodeName!=' });
    await store.until(() => store.watches('/api/v1/pods') === 2);
    store.put(`${pods}/a`, { spec: { nodeName: 'n' } });
    store.put(`${pods}/a`, { spec: { nodeName: 'n' }, status: {} });
    store.put(`${nodes}/n`, {});
    store.remove(`${pods}/a`);
    store.bookmark();
    store.cutWatches('end');
    t.equal(await waiting.ended, undefined);
    await bound.ended;
    t.strictSame(waiting.seen, ['ADDED a', 'DELETED a', 'BOOKMARK']);
    t.strictSame(bound.seen, ['ADDED a', 'MODIFIED a', 'DELETED a']);
    store.compact();
    const late = watch(client, { resourceVersion });
    await late.ended;
    t.strictSame(late.seen, ['ERROR']);
  },
);
