import t from 'tap';
import { keys } from '../../../src/names/keys.ts';
import { image } from '../../support/registry/content.ts';
import { json } from '../../support/kube-server.ts';
import { explainIn, setup } from './explaining.ts';
import { like } from '../../support/like.ts';

/** A pod of the namespace `shop` that runs on the node `n1`. */
const running = (image: string, annotations: object = {}) =>
  json({
    metadata: { name: 'web-0', namespace: 'shop', annotations },
    spec: { nodeName: 'n1', containers: [{ name: 'web', image }] },
    status: { phase: 'Running' },
  });

/** A controller leads. */
const leases = () => {
  const renewTime = new Date().toISOString();
  return json({ items: [{ spec: { holderIdentity: 'c', renewTime, leaseDurationSeconds: 15 } }] });
};

t.test('for a running pod, its node and decision come before the explanation', async (t) => {
  const { kube, arm } = await setup(t);
  kube.script('/api/v1/nodes/n1', json({ status: { nodeInfo: { architecture: 'amd64' } } }));
  const record = { v: 1, outcome: 'placed', architectures: ['amd64', 'arm64'], imagesKey: 'x', added: {} };
  const decided = (more: object = {}) => ({ [keys.decision]: JSON.stringify({ ...record, ...more }) });
  const gone = '127.0.0.1:1/unreachable:1';
  const path = '/api/v1/namespaces/shop/pods/web-0';
  kube.script('/apis/coordination.k8s.io/v1/leases', leases());
  kube.script(path, running(gone, decided()));
  const gated = await explainIn(t, kube, ['pod/web-0']);
  like(t, gated.explained, {
    outcome: 'gated',
    running: { node: 'n1', architecture: 'amd64', outcome: 'placed', required: ['amd64', 'arm64'] },
  });
  kube.script(path, running(gone, decided({ widened: {} })));
  const wider = await explainIn(t, kube, ['pod/web-0', '-o', 'table']);
  const before =
    /now +on node n1 \(amd64\); decided before: placed, widened to amd64, arm64\n +created again +gated\n/;
  like(t, wider.out, before);
  t.notMatch(wider.out, /admitted|unchanged/);

  kube.script(path, running(arm));
  const wrong = await explainIn(t, kube, ['pod/web-0']);
  like(t, wrong.explained?.warnings, [/arm:1 cannot run here: it has arm64, the node is amd64/]);
  const table = await explainIn(t, kube, ['pod/web-0', '-o', 'table']);
  t.match(table.out, /now +on node n1 \(amd64\); no record of a decision\n +created again +placed\n/);
});

t.test('a rollout decides the pods of its workload', async (t) => {
  const { kube, both } = await setup(t);
  const place = (newPods: string): void => {
    const rollout = {
      metadata: { name: 'web', namespace: 'shop' },
      spec: { architecture: 'arm64', names: ['web'] },
      status: { newPods },
    };
    const path = '/apis/arch.example/v1alpha1/namespaces/shop/architecturerollouts';
    kube.script(path, json({ items: [rollout] }));
  };
  place('Target');
  const spec = { containers: [{ name: 'web', image: both }] };
  const metadata = { name: 'web', namespace: 'shop' };
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d9f', uid: 'u', controller: true };
  const owned = { ...metadata, labels: { 'pod-template-hash': '5d9f' }, ownerReferences: [owner] };
  kube.script('/api/v1/namespaces/shop/pods/web', json({ metadata: owned, spec }));
  const pod = await explainIn(t, kube, ['pod/web']);
  like(t, pod.explained, { outcome: 'placed', required: ['arm64'] });
  t.ok(pod.explained?.rules.some(({ rule }) => rule === 'rollout-target'));
  const workload = (name: string) => json({ metadata: { ...metadata, name }, spec: { template: { spec } } });
  for (const kind of ['deployment', 'statefulset', 'replicaset']) {
    kube.script(`/apis/apps/v1/namespaces/shop/${kind}s/web`, workload('web'));
    const { explained } = await explainIn(t, kube, [`${kind}/web`]);
    like(t, explained, { outcome: 'placed', required: ['arm64'] }, kind);
  }
  kube.script('/apis/apps/v1/namespaces/shop/deployments/db', workload('db'));
  const other = await explainIn(t, kube, ['deployment/db']);
  like(t, other.explained, { required: ['amd64', 'arm64'] }, 'not selected by the rollout');
  place('Choose');
  kube.script('/apis/coordination.k8s.io/v1/leases', leases());
  const { out } = await explainIn(t, kube, ['pod/web', '-o', 'table']);
  t.match(out, /\n {2}gate +waits until the leader has chosen its architecture\n/);
});

t.test('a note about a broken image is shown', async (t) => {
  const { kube, arm } = await setup(t);
  const { digest } = image('linux/arm64');
  const until = new Date(Date.now() + 3_600_000).toISOString();
  const noteOf = (name: string) => JSON.stringify({ image: name, namespaces: ['shop'], until });
  const gone = '127.0.0.1:1/unreachable:1';
  const data = {
    [`${digest.replace(':', '-')}.arm64`]: noteOf('another/name:1'),
    [`sha256-${'b'.repeat(64)}.s390x`]: noteOf(gone),
  };
  kube.script('/api/v1/configmaps', json({ items: [{ data }] }));
  for (const [about, name, architecture] of [
    ['the only architecture of the image', arm, 'arm64'],
    ['by name, if its digest is not known', gone, 's390x'],
  ] as const) {
    for (const namespace of ['shop', 'bank']) {
      const object = {
        metadata: { name: 'web', namespace },
        spec: { containers: [{ name: 'web', image: name }] },
      };
      kube.script(`/api/v1/namespaces/${namespace}/pods/web`, json(object));
    }
    like(t, (await explainIn(t, kube, ['pod/web'])).explained, { broken: [{ architecture, until }] }, about);
    const { out } = await explainIn(t, kube, ['pod/web', '-o', 'table']);
    t.match(out, new RegExp(`is recorded as broken on ${architecture} until `), about);
    const other = await explainIn(t, kube, ['pod/web', '-n', 'bank']);
    t.notOk('broken' in (other.explained ?? {}), `${about}, in another namespace`);
  }
});

t.test("workloads are named in kubectl's forms, with a namespace, beside files", async (t) => {
  const { kube, arm } = await setup(t);
  const template = { spec: { containers: [{ name: 'db', image: arm }] } };
  const kinds: [name: string, path: string, kind: string][] = [
    ['deploy/db', 'apps/v1 deployments', 'Deployment'],
    ['Deployments/db', 'apps/v1 deployments', 'Deployment'],
    ['sts/db', 'apps/v1 statefulsets', 'StatefulSet'],
    ['daemonset/db', 'apps/v1 daemonsets', 'DaemonSet'],
    ['rs/db', 'apps/v1 replicasets', 'ReplicaSet'],
    ['jobs/db', 'batch/v1 jobs', 'Job'],
  ];
  const db = json({ metadata: { name: 'db', namespace: 'bank' }, spec: { template } });
  for (const [, path] of kinds) kube.script(`/apis/${path.replace(' ', '/namespaces/bank/')}/db`, db);
  const spec = { jobTemplate: { spec: { template } } };
  const cron = { metadata: { name: 'db', namespace: 'bank' }, spec };
  kube.script('/apis/batch/v1/namespaces/bank/cronjobs/db', json(cron));
  const names = [...kinds.map(([name]) => name), 'cj/db'];
  const { code, results } = await explainIn(t, kube, [...names, '-n', 'bank']);
  t.equal(code, 0);
  const [found, wanted] = [results.map(({ kind }) => kind), kinds.map(([, , kind]) => kind)];
  t.strictSame(found, [...wanted, 'CronJob']);
  for (const { images, kind } of results) like(t, images, [{ architectures: ['arm64'] }], kind);
});

t.test('an object that cannot be read is reported in one line', async (t) => {
  const { kube, arm } = await setup(t);
  kube.script('/api/v1/namespaces/shop/pods/web-0', running(arm));
  kube.script('/api/v1/namespaces/shop/pods/gone', json({ message: 'pods "gone" not found' }, 404));
  kube.script('/api/v1/namespaces/shop/pods/secret', json({ message: 'pods "secret" is forbidden' }, 403));
  const cases: [string, RegExp][] = [
    ['pod/gone', /: there is no Pod gone in the namespace shop; -n sets another namespace\n$/],
    ['pod/secret', /pods "secret" is forbidden/],
  ];
  for (const [name, message] of cases) {
    const { code, results, err } = await explainIn(t, kube, [name, 'pod/web-0']);
    t.equal(code, 3, name);
    like(t, results, [{ name: 'web-0', outcome: 'placed' }], 'the others are explained');
    like(t, err, message, name);
    t.equal(err.trimEnd().split('\n').length, 1, name);
  }
});
