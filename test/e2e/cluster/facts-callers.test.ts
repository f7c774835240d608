/**
 * `explain` and `report` for people with different rights, through a real API server's proxy, which drops
 * their credentials. The controller recognizes callers by service account tokens, and refuses others.
 */
import { readFile } from 'node:fs/promises';
import t from 'tap';
import { parseAllDocuments } from 'yaml';
import { factsAudience } from '../../../src/facts-api/request.ts';
import { ownNamespace, runArchwright } from './archwright/archwright.ts';
import { clientOf, patience, type Cluster } from './harness.ts';
import { podOf } from './control-plane/pods.ts';
import { startRelease } from './archwright/release.ts';

const rbac = 'rbac.authorization.k8s.io';
const service = 'https:archwright-controller:facts';

async function createRoleForPeople(cluster: Cluster): Promise<void> {
  const chart = parseAllDocuments(await readFile('deploy/archwright.yaml', 'utf8'));
  const objects = chart.map((document) => document.toJS() as { kind: string; metadata: { name: string } });
  const role = objects.find(
    ({ kind, metadata: { name } }) => kind === 'Role' && name === 'archwright-explain',
  );
  await cluster.create(role ?? {});
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

t.test('users get facts according to their rights; unknown callers get none', async (t) => {
  const { cluster, images, controller } = await startRelease(t);
  const image = images.push('team/web', ['amd64', 'arm64'], 'private');
  await createRoleForPeople(cluster);
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
    t.match(output, through, user);
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

  // Tokens of other callers.
  const admin = await clientOf(cluster.kubeconfig);
  t.teardown(() => admin.close());
  const tokenOf = async (
    namespace: string,
    audiences: readonly string[],
    boundObjectRef?: object,
  ): Promise<string> => {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default/token`;
    const spec = { audiences, boundObjectRef };
    const request = { kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1', spec };
    const { status } = await cluster.post<{ status: { token: string } }>(path, request);
    return status.token;
  };
  const ask = (token: string): Promise<object> => {
    const body = {
      token,
      namespace: 'shop',
      images: [{ image, pullPolicy: 'Always' }],
      pullSecrets: [],
      serviceAccount: 'default',
      deadlineMs: 5000,
    };
    const path = `/api/v1/namespaces/${ownNamespace}/services/${service}/proxy/v1/facts`;
    return admin.create(path, body, { signal: patience() });
  };
  t.match(await ask(await tokenOf('shop', [factsAudience])), { facts: [{ image }] });
  const ofPod = await tokenOf('shop', [factsAudience], { apiVersion: 'v1', kind: 'Pod', name: 'web' });
  await cluster.delete('/api/v1/namespaces/shop/pods/web', { gracePeriodSeconds: '0' });
  const rows: [about: string, token: string, message: RegExp][] = [
    ['of a pod that is gone', ofPod, /the token is not valid/],
    ['of another namespace', await tokenOf('bank', [factsAudience]), /has no right to create imagefacts/],
    ['for the API server', await tokenOf('shop', []), /the token is not for archwright/],
    ['with a changed payload', forged(await tokenOf('bank', [factsAudience])), /the token is not valid/],
  ];
  for (const [about, token, message] of rows)
    await t.rejects(ask(token), { code: 'forbidden', message }, about);
  t.notMatch(controller.process.log(), /eyJ/, 'no token is logged');
});

/** A token of bank with a payload that names shop. */
function forged(token: string): string {
  const [header = '', payload = '', signature = ''] = token.split('.');
  const text = Buffer.from(payload, 'base64url').toString('utf8').replaceAll('bank', 'shop');
  return [header, Buffer.from(text).toString('base64url'), signature].join('.');
}
