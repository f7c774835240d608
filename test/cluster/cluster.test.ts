import t from 'tap';
import { createKubeClient } from '../../src/kube/api/client.ts';
import { connectCluster } from '../../src/cluster/cluster.ts';
import { events, json, startKubeServer } from '../support/kube-server.ts';
import { silentLog } from '../support/captured.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { like } from '../support/like.ts';

const node = (name: string, architecture?: string, labels = {}): object => ({
  metadata: { name, labels },
  ...(architecture !== undefined && { status: { nodeInfo: { architecture } } }),
});

void t.test(
  'labels and architectures come from watches, Secrets are read by name, and are absent if forbidden',
  async (t) => {
    const server = await startKubeServer();
    server.script(
      '/api/v1/namespaces',
      json({
        metadata: { resourceVersion: '1' },
        items: [{ metadata: { name: 'team', labels: { a: 'b' } } }],
      }),
    );
    server.script('/api/v1/namespaces?watch', events());
    server.script(
      '/api/v1/nodes',
      json({
        metadata: { resourceVersion: '1' },
        items: [
          node('n1', 'arm64', { 'kubernetes.io/arch': 'amd64' }),
          // As the API server has it before the kubelet reports.
          node('virtual', '', { 'kubernetes.io/arch': 'riscv64' }),
          node('mute', ''),
          node('n2', undefined, { 'kubernetes.io/arch': 's390x', 'kubernetes.io/hostname': 'h2' }),
        ],
      }),
    );
    server.script('/api/v1/nodes?watch', events());
    server.script('/api/v1/namespaces/team/secrets/pull', json({ metadata: { name: 'pull' }, type: 'x' }));
    server.script('/api/v1/namespaces/team/secrets/denied', json({ message: 'rbac' }, 403));
    server.script('/api/v1/namespaces/team/secrets/broken', json({ message: 'etcd' }, 500));
    server.script(
      '/api/v1/namespaces/team/serviceaccounts/default',
      json({ imagePullSecrets: [{ name: 'one' }, {}, { name: '' }, { name: 'two' }] }),
    );
    const client = createKubeClient({ access: server.access, userAgent: 'archwright/test' });
    const cluster = connectCluster({ client, log: silentLog });
    t.teardown(async () => {
      cluster.close();
      await server.close();
    });
    await cluster.ready(neverAborted);
    t.strictSame(cluster.namespaceLabels('team'), { a: 'b' });
    t.strictSame(cluster.namespaceLabels('other'), {});
    t.equal(cluster.nodeArchitecture('n1'), 'arm64');
    t.equal(cluster.nodeArchitecture('n2'), 's390x');
    t.equal(cluster.nodeArchitecture('n3'), undefined);
    t.equal(cluster.nodeArchitecture('virtual'), 'riscv64');
    t.equal(cluster.nodeArchitecture('mute'), undefined);
    t.strictSame(
      ['n1', 'n2', 'n3'].flatMap((node) => cluster.nodeHostnames(node)),
      ['n1', 'h2', 'n3'],
    );
    const { signal } = new AbortController();
    like(t, await cluster.secret('team', 'pull', signal), { type: 'x' });
    t.equal(await cluster.secret('team', 'missing', signal), undefined);
    t.equal(await cluster.secret('team', 'denied', signal), undefined);
    await t.rejects(cluster.secret('team', 'broken', signal), { code: 'unavailable' });
    t.strictSame(await cluster.serviceAccountPullSecrets('team', 'default', signal), ['one', 'two']);
    t.strictSame(await cluster.serviceAccountPullSecrets('team', 'none', signal), []);
    t.equal(await cluster.secret('../..', 'x/y', signal), undefined);
    t.match(server.requests.at(-1)?.path, '/api/v1/namespaces/..%2F../secrets/x%2Fy');
  },
);
