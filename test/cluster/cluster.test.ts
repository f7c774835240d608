/** What is read of the cluster: labels, Secrets, classes of nodes, nodes of an agent, drifted tags, TLS. */
import t, { type Test } from 'tap';
import { connectCluster } from '../../src/cluster/cluster.ts';
import { watchTlsSecret } from '../../src/cluster/tls-secret.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import {
  createWorld,
  namespace,
  secretNames,
  settled,
  type World,
} from '../controller/features/certificates/world.ts';
import { connect, connectedStore } from '../kube/support.ts';
import { captureLog, silentLog } from '../support/captured.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { like } from '../support/like.ts';
import {
  type PooledNode,
  createNodeClasses,
  createNodeHostnames,
  pooledNode,
} from '../../src/cluster/nodes.ts';
import { classify } from '../../src/nodes/classify.ts';
import type { NodeReport } from '../../src/nodes/node-report.ts';
import { followDriftedTags } from '../../src/cluster/config-map.ts';
import { formatDrifted, keyOfDrifted } from '../../src/images/sources/drifted-tags.ts';
import { systemClock } from '../../src/async/clock.ts';

t.test(
  'labels and architectures come from watches, Secrets are read by name, absent if forbidden',
  async (t) => {
    const { store, client } = await connectedStore(t);
    const putNode = (name: string, labels: object, architecture?: string): void =>
      void store.put(`/api/v1/nodes/${name}`, {
        metadata: { labels },
        status: { nodeInfo: { architecture } },
      });
    putNode('n1', { 'kubernetes.io/arch': 'amd64' }, 'arm64');
    // As the API server has it before the kubelet reports.
    putNode('virtual', { 'kubernetes.io/arch': 'riscv64' }, '');
    putNode('mute', {}, '');
    putNode('n2', { 'kubernetes.io/arch': 's390x', 'kubernetes.io/hostname': 'h2' });
    store.put('/api/v1/namespaces/team', { metadata: { labels: { a: 'b' } } });
    for (const name of ['pull', 'denied', 'broken'])
      store.put(`/api/v1/namespaces/team/secrets/${name}`, { type: 'x' });
    store.fault(/denied$/, { status: 403 });
    store.fault(/broken$/, { status: 500 });
    store.put('/api/v1/namespaces/team/serviceaccounts/default', {
      imagePullSecrets: [{ name: 'one' }, {}, { name: '' }, { name: 'two' }],
    });
    const cluster = connectCluster({ client, log: silentLog });
    t.teardown(() => cluster.close());
    await cluster.ready(neverAborted);
    t.strictSame([cluster.namespaceLabels('team')['a'], cluster.namespaceLabels('other')], ['b', {}]);
    const names = ['n1', 'n2', 'n3', 'virtual', 'mute'];
    t.strictSame(names.map(cluster.nodeArchitecture), ['arm64', 's390x', undefined, 'riscv64', undefined]);
    t.strictSame(names.slice(0, 3).flatMap(cluster.nodeHostnames), ['n1', 'h2', 'n3']);
    const secret = (name: string, namespace = 'team') => cluster.secret(namespace, name, neverAborted);
    like(t, await secret('pull'), { type: 'x' });
    t.equal(await secret('missing'), undefined);
    t.equal(await secret('denied'), undefined);
    await t.rejects(secret('broken'), { code: 'unavailable' });
    t.strictSame(await cluster.serviceAccountPullSecrets('team', 'default', neverAborted), ['one', 'two']);
    t.strictSame(await cluster.serviceAccountPullSecrets('team', 'none', neverAborted), []);
    t.equal(await secret('x/y', '../..'), undefined);
    t.equal(store.requests.at(-1)?.path, '/api/v1/namespaces/..%2F../secrets/x%2Fy');
  },
);

const agent = { 'arch.example/agent': 'true' };
const node = (hostname: string, pool: string, labels = {}): PooledNode =>
  pooledNode({ 'kubernetes.io/hostname': hostname, 'karpenter.sh/nodepool': pool, ...labels });

function nodesOf(initial: Readonly<Record<string, PooledNode>>) {
  const nodes = new Map(Object.entries(initial));
  const listeners: (() => void)[] = [];
  return {
    get: (_: string, name: string) => nodes.get(name),
    values: () => nodes.values(),
    onChange: (listener: () => void) => void listeners.push(listener),
    put: (name: string, object: PooledNode) => {
      nodes.set(name, object);
      for (const listener of listeners) listener();
    },
  };
}

t.test('an agent represents the nodes of its pool that run none', async (t) => {
  const nodes = nodesOf({
    a1: node('host-a1', 'a', agent),
    a2: node('host-a2', 'a', agent),
    a3: node('host-a3', 'a'),
    b1: node('host-b1', 'b'),
    mute: pooledNode({ 'karpenter.sh/nodepool': 'a' }),
  });
  const hostnames = createNodeHostnames(nodes);
  t.strictSame(hostnames('a1'), ['host-a1', 'host-a3']);
  t.strictSame(hostnames('a2'), ['host-a2', 'host-a3']);
  t.strictSame(hostnames('b1'), ['host-b1'], 'with agents on all nodes, each represents only its own');
  t.strictSame(hostnames('gone'), ['gone']);
  nodes.put('a4', node('host-a4', 'a'));
  t.strictSame(hostnames('a1'), ['host-a1', 'host-a3', 'host-a4']);
});

t.test('nodes are grouped by class again only after a class or a report has changed', async (t) => {
  const classified = (name: string, architecture: string) => ({
    classified: classify({
      metadata: { name },
      status: { nodeInfo: { architecture, operatingSystem: 'linux' } },
    }),
  });
  const nodes = new Map<string, ReturnType<typeof classified>>();
  let changed: Parameters<Parameters<typeof createNodeClasses>[0]['onEach']>[0] = () => undefined;
  let reports: ReadonlyMap<string, NodeReport> = new Map();
  const put = (name: string, object: ReturnType<typeof classified>, isTold = true): void => {
    const previous = nodes.get(name);
    nodes.set(name, object);
    if (isTold) changed({ namespace: '', name, object, previous });
  };
  put('n1', classified('n1', 'amd64'));
  const watch: Parameters<typeof createNodeClasses>[0] = {
    values: () => nodes.values(),
    onEach: (listener) => void (changed = listener),
  };
  t.equal(createNodeClasses(watch)()?.size, 1, 'without reports');
  const classes = createNodeClasses(watch, () => reports);
  const architectures = () =>
    [...(classes()?.values() ?? [])]
      .flat()
      .map((group) => [group.class.architecture, group.class.amd64Level]);
  t.strictSame(architectures(), [['amd64', undefined]], 'nodes from before');
  const first = classes();
  put('n2', classified('n2', 'arm64'), false);
  put('n1', classified('n1', 'amd64'));
  t.equal(classes(), first, 'an equal node');
  put('n2', classified('n2', 'arm64'));
  t.equal(classes(), first, 'equal to what was there');
  put('n3', classified('n3', 'amd64'));
  t.not(classes(), first);
  t.equal(architectures().length, 2);
  reports = new Map([['n1', { amd64Level: 3 }]]);
  t.strictSame(architectures().filter(([name]) => name === 'amd64').length, 2, 'a report splits a class');
  nodes.clear();
  changed({ namespace: '', name: 'n3', object: undefined, previous: classified('n3', 'amd64') });
  t.equal(classes(), undefined, 'no node is known');
});

const path = '/api/v1/namespaces/archwright/configmaps/archwright-drift';

t.test('each digest of a drifted tag is applied once, until the tag names another', async (t) => {
  const { store, client } = await connectedStore(t);
  const applied: string[] = [];
  const followed = followDriftedTags({
    client,
    namespace: 'archwright',
    name: 'archwright-drift',
    clock: systemClock,
    log: silentLog,
    cache: {
      forget: (tags) => applied.push(...[...tags].map(({ image, digest }) => `${image} ${digest.at(-1)}`)),
    },
  });
  t.teardown(() => followed.close());
  const note = async (tags: Readonly<Record<string, string>>, ...expected: readonly string[]) => {
    const entries = Object.entries(tags).map(([image, letter]) => {
      const digest = `sha256:${letter.repeat(64)}`;
      const tag = { image, digest, lost: ['linux/arm64'], gained: [], since: 1_700_000_000_000 };
      return [keyOfDrifted(image), formatDrifted(tag)] as const;
    });
    store.put(path, { data: Object.fromEntries(entries) });
    await store.until(() => applied.length >= expected.length, expected.join());
    t.strictSame(applied, expected);
  };
  await note({ a: 'a' }, 'a a');
  await note({ a: 'a', b: 'b' }, 'a a', 'b b');
  await note({ a: 'c', b: 'b' }, 'a a', 'b b', 'a c');
  store.remove(path);
  await store.quiet();
  await note({ a: 'c' }, 'a a', 'b b', 'a c', 'a c');
});

function watchSecret(t: Test, world: World, use: 'client' | 'server' = 'client') {
  const { log, lines } = captureLog('debug');
  const client = connect(t, { access: world.store.access });
  const name = secretNames['controller-client'];
  const tls = watchTlsSecret({ client, namespace, name, clock: systemClock, log, use });
  t.teardown(() => tls.close());
  const now = () => {
    const { cert, key, ca } = tls.current() ?? {};
    return key && { 'tls.crt': cert, 'tls.key': reveal(key), 'ca.crt': ca };
  };
  return { tls, now, lines };
}

t.test('TLS from a Secret: it is awaited, and the last good content stays', async (t) => {
  const world = await createWorld(t);
  const { tls, now, lines } = watchSecret(t, world);
  await t.rejects(tls.ready(AbortSignal.abort()), { name: 'AbortError' });
  t.match(tls.problem(), /^Secret .*-controller-client-tls: it does not exist, or may not be read$/);
  t.equal(now(), undefined);
  const lead = world.leader();
  await lead();
  await tls.ready(neverAborted);
  const good = world.texts('controller-client') ?? {};
  t.strictSame(now(), good);
  const selectors = world.store.received(/secrets$/).map(({ query }) => query.get('fieldSelector'));
  const name = secretNames['controller-client'];
  t.strictSame(new Set(selectors), new Set([`metadata.name=${name}`]), 'no request for other Secrets');

  let changes = 0;
  tls.onChange(() => (changes += 1));
  world.put('controller-client', { ...good, 'tls.key': world.texts('agent')?.['tls.key'] ?? '' });
  await world.store.until(() => /tls\.key of the Secret .* is not the key/.test(lines.join('')), 'the line');
  t.strictSame([now(), changes], [good, 0]);
  world.remove('controller-client');
  await lead();
  await world.store.until(() => changes === 1, 'the next good content');
  t.strictSame(now(), world.texts('controller-client'));
  t.notMatch(lines.join(''), 'PRIVATE');
});

t.test('a client needs authorities, a server does not', async (t) => {
  const world = await settled(t);
  const { 'tls.crt': cert = '', 'tls.key': key = '' } = world.texts('controller-client') ?? {};
  world.put('controller-client', { 'tls.crt': cert, 'tls.key': key });
  const client = watchSecret(t, world);
  const server = watchSecret(t, world, 'server');
  await server.tls.ready(neverAborted);
  t.equal(server.now()?.['tls.crt'], cert);
  await world.store.until(() => client.lines.length > 0, 'a line about the client');
  t.equal(client.now(), undefined);
  t.match(client.tls.problem(), /: it needs tls\.crt and tls\.key, and ca\.crt$/);
  t.match(client.lines.join(''), /a TLS certificate cannot be used; it must be written again/);
  t.notMatch(client.lines.join(''), 'PRIVATE');
});
