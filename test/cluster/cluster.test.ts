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

t.test(
  'agents represent the nodes of their pool that run none; classes of nodes, until one changes',
  async (t) => {
    const { store, client } = await connectedStore(t);
    const put = (name: string, labels: object, architecture = 'amd64'): void =>
      void store.put(`/api/v1/nodes/${name}`, {
        metadata: { labels: { 'karpenter.sh/nodepool': 'a', ...labels } },
        status: { nodeInfo: { architecture, operatingSystem: 'linux' } },
      });
    const named = (hostname: string, labels = {}) => ({ 'kubernetes.io/hostname': hostname, ...labels });
    for (const name of ['a1', 'a2']) put(name, named(`host-${name}`, { 'arch.example/agent': 'true' }));
    put('a3', named('host-a3'));
    put('b1', named('host-b1', { 'karpenter.sh/nodepool': 'b' }));
    put('mute', {});
    const cluster = connectCluster({ client, log: silentLog });
    t.teardown(() => cluster.close());
    let reports: ReadonlyMap<string, NodeReport> = new Map();
    const [classes, withoutReports] = [cluster.nodeClasses(() => reports), cluster.nodeClasses()];
    t.equal(classes(), undefined, 'no node is known');
    await cluster.ready(neverAborted);
    t.strictSame(cluster.nodeHostnames('a1'), ['host-a1', 'host-a3']);
    t.strictSame(cluster.nodeHostnames('a2'), ['host-a2', 'host-a3']);
    t.strictSame(
      cluster.nodeHostnames('b1'),
      ['host-b1'],
      'with agents on all nodes, each represents only its own',
    );
    t.strictSame(cluster.nodeHostnames('gone'), ['gone']);
    const groups = () =>
      [...(classes()?.entries() ?? [])].map(([architecture, all]) => [architecture, all.length]);
    t.strictSame(groups(), [['amd64', 1]]);
    const first = classes();
    put('a1', named('host-a1', { 'arch.example/agent': 'true', other: 'x' }));
    put('a2', named('host-a2'));
    await store.until(() => cluster.nodeHostnames('a1').length === 3, 'the label has gone');
    reports = new Map();
    t.equal(classes(), first, 'equal nodes, equal reports');
    put('a4', named('host-a4'), 'arm64');
    await store.until(() => cluster.nodeHostnames('a1').length === 4, 'the new node');
    t.strictSame(groups(), [
      ['amd64', 1],
      ['arm64', 1],
    ]);
    reports = new Map([['a1', { amd64Level: 3 }]]);
    t.strictSame(groups()[0], ['amd64', 2], 'a report splits a class');
    t.equal(withoutReports()?.get('amd64')?.length, 1);
    store.remove('/api/v1/nodes/a4');
    await store.until(() => cluster.nodeHostnames('a1').length === 3, 'the node has gone');
    t.equal(classes()?.get('arm64'), undefined);
  },
);

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
