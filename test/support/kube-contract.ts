/**
 * What tests rely on in an API server, by requests of the client. `kube-store.test.ts` runs it with the store,
 * `e2e/cluster/contract.test.ts` with a real API server.
 */
import type { Test } from 'tap';
import type { KubeClient, Patch } from '../../src/kube/api/client.ts';
import type { Query } from '../../src/kube/api/transport.ts';
import { failure } from '../kube/support.ts';
import { like } from './like.ts';
import type { StoredObject } from './kube-store/objects.ts';
import { neverAborted } from './never-aborted.ts';

interface Stored extends StoredObject {
  readonly data?: Readonly<Record<string, string>>;
}

interface List {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly Stored[];
}

interface WatchEvent {
  readonly type: string;
  readonly object: Stored;
}

const core = '/api/v1/namespaces/default';
const maps = `${core}/configmaps`;
const pods = `${core}/pods`;
const deployments = '/apis/apps/v1/namespaces/default/deployments';

const containers = [{ name: 'c', image: 'registry.example/app:1' }];
const podSpec = { containers };
const labelled = (labels: Readonly<Record<string, string | null>>) => ({ metadata: { labels } });
const namesOf = ({ items }: List): string[] => items.map(({ metadata }) => metadata.name);

export async function kubeContract(t: Test, client: KubeClient): Promise<void> {
  const signal = neverAborted;
  const get = (path: string): Promise<Stored> => client.get(path, { signal });
  const list = (path: string, query: Query = {}): Promise<List> => client.get(path, { signal, query });
  const create = (path: string, object: object, query: Query = {}): Promise<Stored> =>
    client.create(path, object, { signal, query });
  const createMap = (name: string, more: object = {}): Promise<Stored> =>
    create(maps, { metadata: { name, ...more }, data: { a: '1' } });
  const patch = (path: string, body: Patch, query: Query = {}): Promise<Stored> =>
    client.patch(path, body, { signal, query });
  const merge = (path: string, body: object, query: Query = {}): Promise<Stored> =>
    patch(path, { type: 'merge', body }, query);
  const remove = (path: string, more: object = {}): Promise<void> => client.delete(path, { signal, ...more });

  await t.test('create', async (t) => {
    const made = await createMap('created');
    like(t, made, {
      metadata: { name: 'created', namespace: 'default', uid: /.-./, creationTimestamp: /^\d{4}-.*\dZ$/ },
      data: { a: '1' },
    });
    t.strictSame((await get(`${maps}/created`)).metadata, made.metadata);
    like(t, await failure(createMap('created')), {
      code: 'conflict',
      message: /409 configmaps "created" already exists$/,
    });
    like(t, await failure(createMap('versioned', { resourceVersion: '7' })), {
      code: 'unavailable',
      message: /500 resourceVersion should not be set/,
    });
    const generated = await Promise.all(
      [1, 2].map(() => create(maps, { metadata: { generateName: 'some-' } })),
    );
    for (const { metadata } of generated) t.match(metadata.name, /^some-[a-z\d]{5}$/);
    t.not(generated[0]?.metadata.name, generated[1]?.metadata.name);
    like(t, await failure(create(maps, { metadata: {} })), {
      code: 'invalid',
      message: /name or generateName/,
    });
    like(t, await failure(createMap('other', { namespace: 'another' })), {
      code: 'bad-answer',
      message: /400 the namespace of the/,
    });
    await create(maps, { metadata: { name: 'dry' } }, { dryRun: 'All' });
    like(t, await failure(get(`${maps}/dry`)), {
      code: 'not-found',
      message: /404 configmaps "dry" not found$/,
    });
    const pod = await create(pods, { metadata: { name: 'p' }, spec: podSpec, status: { phase: 'Running' } });
    like(t, pod.status, { phase: 'Pending' });
  });

  await t.test('patch', async (t) => {
    const path = `${maps}/patched`;
    const { metadata } = await createMap('patched', { labels: { x: '1' } });
    const version = async (): Promise<string> => (await get(path)).metadata.resourceVersion;
    await merge(path, { ...labelled({ x: '1' }), data: { a: '1' } });
    t.equal(await version(), metadata.resourceVersion, 'a patch without changes creates no version');
    await merge(path, { data: { b: '2' } }, { dryRun: 'All' });
    t.equal(await version(), metadata.resourceVersion, 'a dry run changes nothing');
    const { resourceVersion } = (await merge(path, { ...labelled({ x: null, y: '1' }), data: { b: '2' } }))
      .metadata;
    t.ok(Number(resourceVersion) > Number(metadata.resourceVersion));
    like(t, await get(path), { ...labelled({ y: '1' }), data: { a: '1', b: '2' } });
    const at = '/metadata/resourceVersion';
    const now = { op: 'replace', path: at, value: resourceVersion };
    const changed = await patch(path, { type: 'json', body: [now, { op: 'remove', path: '/data/a' }] });
    t.strictSame(changed.data, { b: '2' });
    const conflicts: Patch[] = [
      { type: 'merge', body: { metadata: { resourceVersion }, data: { c: '3' } } },
      { type: 'json', body: [now, { op: 'add', path: '/data/c', value: '3' }] },
    ];
    for (const body of conflicts) {
      const error = await failure(patch(path, body));
      like(t, error, { code: 'conflict', namesFields: false }, JSON.stringify(body));
    }
    const other = merge(path, { metadata: { uid: 'another' }, data: { c: '3' } });
    like(t, await failure(other), {
      code: 'invalid',
      namesFields: true,
      message: /uid.* field is immutable/,
    });
    const broken: Patch[] = [
      { type: 'json', body: [{ op: 'test', path: '/data/b', value: '3' }] },
      { type: 'json', body: [{ op: 'remove', path: '/data/none' }] },
    ];
    for (const body of broken)
      like(t, await failure(patch(path, body)), {
        code: 'invalid',
        namesFields: false,
        message: /error in our request/,
      });
    for (const body of [...conflicts, ...broken])
      t.equal((await failure(patch(`${maps}/none`, body))).code, 'not-found');
  });

  await t.test(
    'apply creates, removes what its manager omits, and leaves the fields of others',
    async (t) => {
      const path = `${maps}/applied`;
      const apply = (data: object, fieldManager = 'us'): Promise<Stored> => {
        const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data };
        return patch(path, { type: 'apply', body, fieldManager });
      };
      await apply({ a: '1', b: '1' });
      await apply({ c: '1' }, 'them');
      const { metadata } = await apply({ b: '2' });
      const { data, ...found } = await get(path);
      t.strictSame(data, { b: '2', c: '1' });
      const { managedFields } = found.metadata;
      const managers = managedFields?.map(({ manager, operation }) => `${manager} ${operation}`).sort();
      t.strictSame(managers, ['them Apply', 'us Apply']);
      await apply({ b: '2' });
      t.equal((await get(path)).metadata.resourceVersion, metadata.resourceVersion, 'no change, no version');
    },
  );

  await t.test('status and generation', async (t) => {
    const path = `${deployments}/web`;
    const app = { app: 'web' };
    const template = { metadata: { labels: app }, spec: podSpec };
    const spec = { replicas: 1, selector: { matchLabels: app }, template };
    const steps: [name: string, () => Promise<Stored>, number, replicas: number, status?: number][] = [
      ['created', () => create(deployments, { metadata: { name: 'web' }, spec }), 1, 1],
      ['labels', () => merge(path, labelled(app)), 1, 1],
      ['spec', () => merge(path, { spec: { replicas: 2 }, status: { replicas: 9 } }), 2, 2],
      ['status', () => merge(`${path}/status`, { spec: { replicas: 3 }, status: { replicas: 5 } }), 2, 2, 5],
      ['both', () => merge(path, { spec: { replicas: 3 }, status: { replicas: 6 } }), 3, 3, 5],
    ];
    for (const [name, step, generation, replicas, status] of steps) {
      const found = await step();
      like(t, found, { metadata: { generation }, spec: { replicas } }, name);
      t.equal((found.status as { replicas?: number } | undefined)?.replicas, status, name);
    }
  });

  await t.test('delete', async (t) => {
    const path = `${maps}/deleted`;
    const { metadata } = await createMap('deleted', { finalizers: ['example.com/us'] });
    t.equal((await failure(remove(`${maps}/none`))).code, 'not-found');
    t.equal((await failure(remove(path, { uid: 'another' }))).code, 'conflict');
    t.equal((await failure(remove(path, { resourceVersion: '1' }))).code, 'conflict');
    await remove(path, { uid: metadata.uid, resourceVersion: metadata.resourceVersion });
    const { deletionTimestamp, resourceVersion } = (await get(path)).metadata;
    t.match(deletionTimestamp, /^\d{4}-.*\dZ$/);
    await remove(path);
    t.equal((await merge(path, { data: { b: '2' } })).metadata.deletionTimestamp, deletionTimestamp);
    t.ok(Number((await get(path)).metadata.resourceVersion) > Number(resourceVersion));
    await merge(path, { metadata: { finalizers: null } });
    t.equal((await failure(get(path))).code, 'not-found');
    const again = await createMap('deleted');
    t.not(again.metadata.uid, metadata.uid);
    await remove(path);
    t.equal((await failure(merge(path, {}))).code, 'not-found');
  });

  await t.test('evict', async (t) => {
    const evict = (name: string, uid?: string): Promise<Stored> => {
      const deleteOptions = { preconditions: { uid } };
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name }, deleteOptions };
      return create(`${pods}/${name}/eviction`, eviction);
    };
    const { metadata } = await create(pods, { metadata: { name: 'evicted' }, spec: podSpec });
    t.equal((await failure(evict('evicted', 'another'))).code, 'conflict');
    like(t, await evict('evicted', metadata.uid), { kind: 'Status', status: 'Success' });
    t.equal((await failure(evict('evicted', metadata.uid))).code, 'not-found');
  });

  await t.test('list', async (t) => {
    await create('/api/v1/namespaces', { metadata: { name: 'another' } });
    const pick = 'picked=yes';
    for (const [name, labels] of [
      ['l-b', { app: 'y' }],
      ['l-a', { app: 'x' }],
      ['l-c', {}],
    ] as const)
      await createMap(name, { labels: { picked: 'yes', ...labels } });
    await create('/api/v1/namespaces/another/configmaps', {
      metadata: { name: 'l-d', labels: { picked: 'yes' } },
    });
    const all = '/api/v1/configmaps';
    const cases: [selector: string, names: string[]][] = [
      [pick, ['l-d', 'l-a', 'l-b', 'l-c']],
      ['app=x', ['l-a']],
      [`${pick},app!=x`, ['l-d', 'l-b', 'l-c']],
      ['app', ['l-a', 'l-b']],
      [`${pick},!app`, ['l-d', 'l-c']],
      ['app in (x, y),app notin (x)', ['l-b']],
    ];
    for (const [labelSelector, names] of cases)
      t.strictSame(namesOf(await list(all, { labelSelector })), names, labelSelector);
    const first = await list(all, { labelSelector: pick, limit: 3 });
    await createMap('l-late', { labels: { picked: 'yes' } });
    const token = first.metadata.continue ?? '';
    const second = await list(all, { labelSelector: pick, limit: 3, continue: token });
    t.strictSame(
      [...namesOf(first), ...namesOf(second)],
      ['l-d', 'l-a', 'l-b', 'l-c'],
      'pages of one moment',
    );
    t.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
    t.equal(second.metadata.continue, undefined);
    t.equal(first.items[0]?.kind, undefined, 'items have no kind');
    like(t, await list(maps, { fieldSelector: 'metadata.name=l-a' }), { items: [{ data: { a: '1' } }] });
    const bare = await client.get<List>(maps, {
      signal,
      query: { labelSelector: 'app' },
      metadataOnly: true,
    });
    t.strictSame(
      bare.items.map(({ metadata: { name }, data }) => [name, data]),
      ['l-a', 'l-b'].map((name) => [name, undefined]),
      'metadata only',
    );
    t.equal((await failure(list(maps, { fieldSelector: 'data.a=1' }))).code, 'bad-answer');
    t.equal((await failure(list(maps, { labelSelector: 'a in x' }))).code, 'bad-answer');
  });

  await t.test('lists of pods by their node', async (t) => {
    for (const [name, node] of [
      ['n-a', undefined],
      ['n-b', 'n1'],
      ['n-c', 'n2'],
    ] as const) {
      const metadata = { name, labels: { on: 'node' } };
      await create(pods, { metadata, spec: { ...podSpec, ...(node !== undefined && { nodeName: node }) } });
    }
    for (const [fieldSelector, names] of [
      ['spec.nodeName=', ['n-a']],
      ['spec.nodeName!=', ['n-b', 'n-c']],
      ['spec.nodeName=n1,metadata.name=n-b', ['n-b']],
      ['status.phase=Pending,spec.nodeName!=n1', ['n-a', 'n-c']],
    ] as const)
      t.strictSame(
        namesOf(await list(pods, { fieldSelector, labelSelector: 'on=node' })),
        names,
        fieldSelector,
      );
  });

  await t.test('watch', async (t) => {
    await createMap('w-before', { labels: { w: 'yes' } });
    const { metadata: start } = await list(maps);
    const path = `${maps}/w-a`;
    const versions = [
      await createMap('w-a'),
      await merge(path, labelled({ w: 'yes' })),
      await merge(path, { data: { b: '2' } }),
      await merge(path, { ...labelled({ w: null }), data: { b: '3' } }),
      await merge(path, { ...labelled({ w: 'yes' }), data: { b: '4' } }),
    ].map(({ metadata }) => metadata.resourceVersion);
    await remove(path);

    async function events(query: Query, count: number): Promise<WatchEvent[]> {
      const found: WatchEvent[] = [];
      const stop = new AbortController();
      const options = { signal: stop.signal, idleMs: 5_000, query: { watch: true, ...query } };
      for await (const line of client.lines(maps, options)) {
        if (found.push(JSON.parse(line) as WatchEvent) === count) break;
      }
      return found;
    }
    const shown = ({ type, object }: WatchEvent): string =>
      `${type} ${object.metadata.name} ${object.data?.['b'] ?? ''}`.trim();
    const { resourceVersion } = start;
    const selected = await events({ resourceVersion, labelSelector: 'w=yes' }, 5);
    t.strictSame(selected.map(shown), [
      'ADDED w-a',
      'MODIFIED w-a 2',
      // An object that leaves the selector is shown as it was before.
      'DELETED w-a 2',
      'ADDED w-a 4',
      'DELETED w-a 4',
    ]);
    const seen = selected.map(({ object }) => object.metadata.resourceVersion);
    t.strictSame(
      seen.slice(0, 4),
      versions.slice(1),
      'also an object that left has the version of the change',
    );
    t.ok(Number(seen[4]) > Number(seen[3]), 'a deletion has its own version');
    const later = await events({ resourceVersion: versions[3] ?? '', fieldSelector: 'metadata.name=w-a' }, 2);
    t.strictSame(later.map(shown), ['MODIFIED w-a 4', 'DELETED w-a 4'], 'from a version');
    const current = await events({ labelSelector: 'w=yes' }, 1);
    t.strictSame(current.map(shown), ['ADDED w-before'], 'without a version: first what there is');
  });

  await t.test('tokens and reviews', async (t) => {
    await create(`${core}/serviceaccounts`, { metadata: { name: 'caller' } });
    const spec = { audiences: ['us.example'] };
    const made = await create(`${core}/serviceaccounts/caller/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec,
    });
    const { token } = made.status as { readonly token: string };
    const review = async (of: string, audiences: string[]): Promise<unknown> => {
      const path = '/apis/authentication.k8s.io/v1/tokenreviews';
      return (await create(path, { spec: { token: of, audiences } })).status;
    };
    const username = 'system:serviceaccount:default:caller';
    const known = { authenticated: true, audiences: ['us.example'], user: { username } };
    like(t, await review(token, ['us.example', 'them.example']), known);
    for (const refused of [await review(token, ['them.example']), await review('none', ['us.example'])]) {
      const { authenticated = false, error } = refused as { authenticated?: boolean; error?: string };
      t.equal(authenticated, false);
      t.type(error, 'string');
    }
    const access = {
      user: username,
      resourceAttributes: { namespace: 'default', verb: 'get', resource: 'pods' },
    };
    const answer = await create('/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec: access });
    like(t, answer.status, { allowed: false });
  });
}
