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

t.test('a running pod: where it is and what was decided, before what would happen now', async (t) => {
  const open = await registry(t, {});
  open.push('web', '1', image('linux/arm64'));
  const kube = await shopAndBank(t);
  kube.script('/api/v1/nodes/n1', json({ status: { nodeInfo: { architecture: 'amd64' } } }));
  const record = JSON.stringify({
    v: 1,
    outcome: 'placed',
    architectures: ['amd64', 'arm64'],
    imagesKey: 'x',
    added: {},
  });
  const running = (image: string, annotations: object) =>
    json({
      metadata: { name: 'web-0', namespace: 'shop', annotations },
      spec: { nodeName: 'n1', containers: [{ name: 'web', image }] },
      status: { phase: 'Running' },
    });
  const path = '/api/v1/namespaces/shop/pods/web-0';
  const lease = {
    spec: { holderIdentity: 'c', renewTime: new Date().toISOString(), leaseDurationSeconds: 15 },
  };
  kube.script('/apis/coordination.k8s.io/v1/leases', json({ items: [lease] }));
  kube.script(path, running('127.0.0.1:1/unreachable:1', { 'arch.example/decision': record }));
  const gated = await explainIn(t, kube, ['pod/web-0']);
  t.match(gated.explained, {
    outcome: 'gated',
    running: { node: 'n1', architecture: 'amd64', outcome: 'placed', required: ['amd64', 'arm64'] },
  });
  const { out } = await explainIn(t, kube, ['pod/web-0', '-o', 'table']);
  t.match(
    out,
    /now +on node n1 \(amd64\); decided before: placed, requires amd64, arm64\n +created again +gated\n/,
  );
  t.notMatch(out, /admitted|unchanged/);
  const widened = JSON.stringify({ ...(JSON.parse(record) as object), widened: {} });
  kube.script(path, running('127.0.0.1:1/unreachable:1', { 'arch.example/decision': widened }));
  const wider = await explainIn(t, kube, ['pod/web-0', '-o', 'table']);
  t.match(wider.out, /decided before: placed, widened to amd64, arm64\n/);

  kube.script(path, running(`${open.host}/web:1`, {}));
  const wrong = await explainIn(t, kube, ['pod/web-0']);
  t.match(wrong.explained?.warnings, [/web:1 cannot run here: it has arm64, the node is amd64/]);
  const table = await explainIn(t, kube, ['pod/web-0', '-o', 'table']);
  t.match(table.out, /now +on node n1 \(amd64\); no record of a decision\n +created again +placed\n/);
});

t.test('a rollout decides the pods of its workload', async (t) => {
  const open = await registry(t, {});
  open.push('web', '1', multiArch(['linux/amd64', 'linux/arm64']));
  const kube = await shopAndBank(t);
  const rollout = {
    metadata: { name: 'web', namespace: 'shop' },
    spec: { architecture: 'arm64', names: ['web'] },
    status: { newPods: 'Target' },
  };
  kube.script('/apis/arch.example/v1alpha1/namespaces/shop/architecturerollouts', json({ items: [rollout] }));
  const spec = { containers: [{ name: 'web', image: `${open.host}/web:1` }] };
  const metadata = { name: 'web', namespace: 'shop' };
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d9f', uid: 'u', controller: true };
  const owned = { ...metadata, labels: { 'pod-template-hash': '5d9f' }, ownerReferences: [owner] };
  kube.script('/api/v1/namespaces/shop/pods/web', json({ metadata: owned, spec }));
  const pod = await explainIn(t, kube, ['pod/web']);
  t.match(pod.explained, { outcome: 'placed', required: ['arm64'] });
  t.ok(pod.explained?.rules.some(({ rule }) => rule === 'rollout-target'));
  for (const kind of ['deployment', 'statefulset', 'replicaset']) {
    kube.script(
      `/apis/apps/v1/namespaces/shop/${kind}s/web`,
      json({ metadata, spec: { template: { spec } } }),
    );
    const { explained } = await explainIn(t, kube, [`${kind}/web`]);
    t.match(explained, { nextPods: { outcome: 'placed', required: ['arm64'] } }, kind);
  }
  kube.script(
    '/apis/apps/v1/namespaces/shop/deployments/db',
    json({ metadata: { ...metadata, name: 'db' }, spec: { template: { spec } } }),
  );
  const other = await explainIn(t, kube, ['deployment/db']);
  t.match(
    other.explained,
    { nextPods: { required: ['amd64', 'arm64'] } },
    'a workload that it does not name',
  );
});

t.test('an image that is noted as broken', async (t) => {
  const open = await registry(t, {});
  const single = image('linux/arm64');
  open.push('web', '1', single);
  const kube = await shopAndBank(t);
  const until = new Date(Date.now() + 3_600_000).toISOString();
  const noteOf = (name: string) => JSON.stringify({ image: name, namespaces: ['shop'], until });
  const gone = '127.0.0.1:1/unreachable:1';
  const data = {
    [`${single.digest.replace(':', '-')}.arm64`]: noteOf('another/name:1'),
    [`sha256-${'b'.repeat(64)}.s390x`]: noteOf(gone),
  };
  kube.script('/api/v1/configmaps', json({ items: [{ data }] }));
  const spec = (image: string) => ({ containers: [{ name: 'web', image }] });
  const rows: [about: string, kind: string, image: string, architecture: string][] = [
    ['the only architecture of the image', 'pods', `${open.host}/web:1`, 'arm64'],
    ['by name, if its digest is not known', 'pods', gone, 's390x'],
    ['of a workload', 'deployments', `${open.host}/web:1`, 'arm64'],
  ];
  for (const [about, kind, image, architecture] of rows) {
    const root = kind === 'pods' ? '/api/v1' : '/apis/apps/v1';
    const metadata = { name: 'web', namespace: 'shop' };
    const object = { metadata, spec: kind === 'pods' ? spec(image) : { template: { spec: spec(image) } } };
    kube.script(`${root}/namespaces/shop/${kind}/web`, json(object));
    const { explained } = await explainIn(t, kube, [`${kind}/web`]);
    t.match(explained, { broken: [{ architecture, until }] }, about);
    const { out } = await explainIn(t, kube, [`${kind}/web`, '-o', 'table']);
    t.match(out, new RegExp(`is noted as broken on ${architecture} until `), about);
    kube.script(
      `${root}/namespaces/bank/${kind}/web`,
      json({ ...object, metadata: { ...metadata, namespace: 'bank' } }),
    );
    const other = await explainIn(t, kube, [`${kind}/web`, '-n', 'bank']);
    t.notOk('broken' in (other.explained ?? {}), `${about}, in another namespace`);
  }
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
    t.equal(code, 3, name);
    t.equal(out, '', name);
    t.match(err, message, name);
  }
});
