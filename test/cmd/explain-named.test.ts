import t, { type Test } from 'tap';
import { image, multiArch } from '../support/registry/content.ts';
import { json, type KubeServer } from '../support/kube-server.ts';
import { cluster, explainIn } from './explaining.ts';
import { registry } from './world.ts';

async function shopAndBank(t: Test): Promise<KubeServer> {
  const server = await cluster(t);
  for (const namespace of ['shop', 'bank']) {
    server.script(`/api/v1/namespaces/${namespace}`, json({ metadata: { name: namespace } }));
    server.script(`/api/v1/namespaces/${namespace}/serviceaccounts/default`, json({}));
  }
  return server;
}

t.test('a running pod is explained as if it were created now', async (t) => {
  const open = await registry(t, {});
  open.push('web', '1', multiArch(['linux/amd64', 'linux/arm64']));
  const kube = await shopAndBank(t);
  kube.script(
    '/api/v1/namespaces/shop/pods/web-0',
    json({
      metadata: { name: 'web-0', namespace: 'shop' },
      spec: { nodeName: 'n1', containers: [{ name: 'web', image: `${open.host}/web:1` }] },
      status: { phase: 'Running' },
    }),
  );
  const { code, err, results } = await explainIn(t, kube, ['pod/web-0']);
  t.equal(err, '');
  t.equal(code, 0);
  t.match(results, [
    { kind: 'Pod', namespace: 'shop', name: 'web-0', outcome: 'placed', required: ['amd64', 'arm64'] },
  ]);
});

t.test("workloads by kubectl's words, in the named namespace, beside files", async (t) => {
  const open = await registry(t, {});
  open.push('db', '1', image('linux/s390x'));
  const template = { spec: { containers: [{ name: 'db', image: `${open.host}/db:1` }] } };
  const kube = await shopAndBank(t);
  const paths: readonly (readonly [string, string, string])[] = [
    ['deploy/db', '/apis/apps/v1/namespaces/bank/deployments/db', 'Deployment'],
    ['Deployments/db', '/apis/apps/v1/namespaces/bank/deployments/db', 'Deployment'],
    ['sts/db', '/apis/apps/v1/namespaces/bank/statefulsets/db', 'StatefulSet'],
    ['daemonset/db', '/apis/apps/v1/namespaces/bank/daemonsets/db', 'DaemonSet'],
    ['rs/db', '/apis/apps/v1/namespaces/bank/replicasets/db', 'ReplicaSet'],
    ['jobs/db', '/apis/batch/v1/namespaces/bank/jobs/db', 'Job'],
  ];
  for (const [, path] of paths)
    kube.script(path, json({ metadata: { name: 'db', namespace: 'bank' }, spec: { template } }));
  const spec = { jobTemplate: { spec: { template } } };
  const cron = { metadata: { name: 'db', namespace: 'bank' }, spec };
  kube.script('/apis/batch/v1/namespaces/bank/cronjobs/db', json(cron));
  const names = [...paths.map(([name]) => name), 'cj/db'];
  const { code, results } = await explainIn(t, kube, [...names, '-n', 'bank']);
  t.equal(code, 0);
  t.strictSame(
    results.map(({ kind }) => kind),
    [...paths.map(([, , kind]) => kind), 'CronJob'],
  );
  for (const { images, kind } of results) t.match(images, [{ architectures: ['s390x'] }], kind);
});

t.test('what cannot be read is said in one line', async (t) => {
  const kube = await shopAndBank(t);
  kube.script('/api/v1/namespaces/shop/pods/gone', json({ message: 'pods "gone" not found' }, 404));
  kube.script('/api/v1/namespaces/shop/pods/secret', json({ message: 'pods "secret" is forbidden' }, 403));
  const cases: [string, RegExp][] = [
    ['pod/gone', /pods "gone" not found/],
    ['pod/secret', /pods "secret" is forbidden/],
  ];
  for (const [name, message] of cases) {
    const { code, out, err } = await explainIn(t, kube, [name]);
    t.equal(code, 2, name);
    t.equal(out, '', name);
    t.match(err, message, name);
  }
});
