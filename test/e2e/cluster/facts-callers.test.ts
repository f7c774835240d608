/**
 * `explain` and `report` for people with different rights, through a real API server's proxy, which drops
 * their credentials. The controller recognizes callers by service account tokens; strangers are in `test/facts-api`.
 */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import {
  ownNamespace,
  prepareArchwright,
  runArchwright,
  startAgent,
  startController,
} from './archwright/archwright.ts';
import { startImages } from './archwright/images.ts';
import { podOf } from './control-plane/pods.ts';
import { freePort, ownAddress } from './control-plane/ports.ts';
import { startCluster, type Cluster } from './harness.ts';
import { like } from '../../support/like.ts';

const rbac = 'rbac.authorization.k8s.io';

/** The chart's Service, ConfigMap and Role for a controller outside of the cluster. @param port of its facts */
async function createRelease(cluster: Cluster, port: number): Promise<void> {
  const service = `${ownNamespace}/archwright-controller`;
  await cluster.make('Service', service, { spec: { ports: [{ name: 'facts', port: 8443 }] } });
  // Endpoints must be pods with this address (pkg/registry/core/service/storage, `isValidAddress`).
  const ip = ownAddress;
  if (ip === undefined) throw new Error('this machine has no address besides loopback');
  // Never pulled: no registry has the image.
  const containers = [{ name: 'app', image: 'archwright:1', imagePullPolicy: 'Never' }];
  await cluster.make('Pod', `${ownNamespace}/controller`, { spec: { nodeName: 'amd64-0', containers } });
  const status = { podIP: ip, podIPs: [{ ip }] };
  await cluster.merge(`${paths.pods(ownNamespace, 'controller')}/status`, { status });
  const targetRef = { kind: 'Pod', name: 'controller', namespace: ownNamespace };
  const subsets = [{ addresses: [{ ip, targetRef }], ports: [{ name: 'facts', port }] }];
  await cluster.make('Endpoints', service, { subsets });
  const metadata = { labels: { 'app.kubernetes.io/part-of': 'archwright' } };
  const data = { 'archwright.toml': 'preferredArchitecture = "arm64"\n' };
  await cluster.make('ConfigMap', `${ownNamespace}/archwright`, { metadata, data });
  const objects = parseAllDocuments(readFileSync('deploy/archwright.yaml', 'utf8')).map(
    (document) => document.toJS() as KubeObject,
  );
  const isRole = ({ kind, metadata }: KubeObject): boolean =>
    kind === 'Role' && metadata?.name === 'archwright-explain';
  await cluster.create(objects.find(isRole) ?? {});
}

/** @param user name of a person, or `namespace/name` of a service account */
async function bind(cluster: Cluster, user: string, role: string, namespace: string): Promise<void> {
  const [home, account] = user.split('/');
  const kind = namespace === ownNamespace ? 'Role' : 'ClusterRole';
  await cluster.make('RoleBinding', `${namespace}/${user.replace('/', '-')}-${role}`, {
    roleRef: { apiGroup: rbac, kind, name: role },
    subjects: [
      account === undefined
        ? { apiGroup: rbac, kind: 'User', name: user }
        : { kind: 'ServiceAccount', namespace: home, name: account },
    ],
  });
}

t.test('users get facts according to their rights; tokens are not logged', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 1 } }, t);
  const images = await startImages(cluster);
  const tls = await prepareArchwright(cluster);
  const agent = await startAgent(cluster, { tls, settings: { ...images.settings, ...images.hostSettings } });
  const port = await freePort();
  const settings = { 'facts-listen': `0.0.0.0:${port}` };
  const controller = await startController(cluster, { tls, agents: [agent], settings });
  await createRelease(cluster, port);
  const image = images.push('team/web', ['amd64', 'arm64'], 'private');
  await cluster.createNamespace('shop');
  await cluster.createNamespace('bank');
  for (const namespace of ['shop', 'bank'])
    await cluster.create(podOf('web', image, {}, { namespace, annotations: {} }));
  for (const user of ['dev', 'viewer']) await bind(cluster, user, 'archwright-explain', ownNamespace);
  await bind(cluster, 'dev', 'edit', 'shop');
  await bind(cluster, 'viewer', 'view', 'shop');

  const as = async (user: string, ...args: readonly string[]) => {
    const group = user === 'admin' ? { group: 'system:masters' } : {};
    const kubeconfig = await cluster.identities.kubeconfig({ cn: user, ...group }, cluster.server);
    return await runArchwright(cluster, [...args, '--kubeconfig', kubeconfig]);
  };
  const through = /looked up through archwright\/archwright-controller/;

  for (const user of ['dev', 'admin']) {
    const { code, output } = await as(user, 'explain', 'pod', 'web', '-n', 'shop');
    t.equal(code, 0, output);
    like(t, output, through, user);
    t.match(output, /(?:decision|created again) +placed/, user);
    t.match(output, /amd64 arm64 +(?:registry|memory) +docker-config/, `${user}: with the login of the node`);
    t.match(output, /prefers +arm64/, `${user}: from the settings of the cluster`);
  }
  const local = await as('dev', 'explain', '--local', 'pod/web', '-n', 'shop');
  t.match(local.output, /looked up from this machine/);
  t.match(local.output, /unknown \(/, 'this machine has no login');

  const viewer = await as('viewer', 'explain', 'pod/web', '-n', 'shop');
  t.equal(viewer.code, 3);
  t.match(viewer.output, /cannot create resource "serviceaccounts\/token"/);
  t.match(viewer.output, /--local looks up images from this machine/);
  const other = await as('dev', 'explain', 'pod/web', '-n', 'bank');
  t.equal(other.code, 3);
  t.match(other.output, /pods "web" is forbidden/);
  const report = await as('admin', 'report', '-n', 'shop', '-n', 'bank');
  t.equal(report.code, 0, report.output);
  t.match(report.output, /bank +Pod\/web +1 .* yes/);

  const reporter = ['--as-service-account', `${ownNamespace}/reporter`];
  await cluster.make('ServiceAccount', `${ownNamespace}/reporter`);
  const refused = await as('admin', 'report', '-n', 'bank', ...reporter);
  t.equal(refused.code, 3);
  t.match(refused.output, /reporter has no right to create imagefacts\.arch\.example in bank/);
  const rules = [{ apiGroups: ['arch.example'], resources: ['imagefacts'], verbs: ['create'] }];
  await cluster.make('ClusterRole', 'reporting', { rules });
  await bind(cluster, `${ownNamespace}/reporter`, 'reporting', 'bank');
  t.equal((await as('admin', 'report', '-n', 'bank', ...reporter)).code, 0);
  t.equal((await as('admin', 'report', '-n', 'shop', ...reporter)).code, 3, 'only there');

  t.notMatch(controller.process.log(), /eyJ/, 'no token is logged');
});
