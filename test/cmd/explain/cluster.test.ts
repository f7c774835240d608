import { createServer } from 'node:net';
import t, { type Test } from 'tap';
import { multiArch } from '../../support/registry/content.ts';
import { json } from '../../support/kube-server.ts';
import { listen } from '../../support/listen.ts';
import { cluster, explainIn, pod as podOf, rulesOf, shop } from './explaining.ts';
import { dockerConfig, files, privateApp, pullSecret } from '../world.ts';
import { like } from '../../support/like.ts';

const pod = (image: string, spec: Readonly<Record<string, unknown>> = {}) =>
  podOf({ ...spec, containers: [{ name: 'web', image }] });

const explain = (t: Test, kube: Parameters<typeof explainIn>[1], text: string, ...args: string[]) =>
  explainIn(t, kube, ['-f', '-', ...args], text);

/** A cluster, and a registry with an image for arm64 and one for amd64 and arm64. */
async function setup(t: Test) {
  const server = await shop(t);
  return { server, kube: await cluster(t), arm: `${server.host}/arm:1`, both: `${server.host}/proxy:1` };
}

t.test('pull secrets and namespace labels are read from the cluster, by name', async (t) => {
  const { server, image: app } = await privateApp(t);
  const kube = await cluster(t);
  const secret: unknown = JSON.parse(pullSecret(dockerConfig(server.host, 'ann', 'password-of-ann')));
  const imagePullSecrets = [{ name: 'regcred' }];
  const labels = { 'arch.example/placement': 'disabled' };
  kube.script('/api/v1/namespaces/shop', json({ metadata: { name: 'shop', labels: {} } }));
  kube.script('/api/v1/namespaces/shop/secrets/regcred', json(secret));
  kube.script('/api/v1/namespaces/shop/serviceaccounts/default', json({ imagePullSecrets }));
  kube.script('/api/v1/namespaces/off', json({ metadata: { name: 'off', labels } }));

  const named = await explain(t, kube, pod(app, { imagePullSecrets }));
  t.equal(named.explained?.namespace, 'shop', 'the namespace of the context');
  t.equal(named.explained?.images[0]?.credentialSource, 'pull-secret');
  t.equal(named.err, '');
  const account = await explain(t, kube, pod(app));
  t.equal(account.explained?.images[0]?.credentialSource, 'pull-secret', 'that of the service account');
  const off = await explain(t, kube, pod(app), '-n', 'off');
  t.strictSame(rulesOf(off.explained), ['skip-disabled-by-namespace']);
  const gone = await explain(t, kube, pod(app, { imagePullSecrets: [{ name: 'gone' }] }));
  t.match(gone.err, /pull secret shop\/gone is not in the files or in the cluster/);
  t.equal(gone.explained?.images[0]?.unknown, 'unauthorized');
  t.ok(kube.requests.every(({ authorization }) => authorization === 'Bearer token-of-the-user'));
  t.ok(kube.requests.every(({ query }) => !query.has('watch')));
});

t.test("a forbidden read leads to a warning, except for archwright's own objects", async (t) => {
  const { kube, arm } = await setup(t);
  const forbidden = json({ message: 'it is forbidden' }, 403);
  const reported = [
    '/api/v1/namespaces/shop',
    '/api/v1/namespaces/shop/serviceaccounts/default',
    '/apis/arch.example/v1alpha1/namespaces/shop/podplacementconfigs',
  ];
  const own = ['/api/v1/configmaps', '/apis/coordination.k8s.io/v1/leases'];
  for (const path of [...reported, ...own]) kube.script(path, forbidden);
  const { explained, err, code } = await explain(t, kube, pod(arm));
  t.equal(code, 0);
  t.strictSame(explained?.required, ['arm64']);
  const [settings, ...others] = err.trim().split('\n');
  t.match(settings, /no permission to read the ConfigMap of archwright, so its settings are unknown/);
  const warning = (path: string): string =>
    `archwright: warning: no permission to read ${path}; the decision ignores it`;
  t.strictSame(others.sort(), reported.map(warning).sort());
  const read = new Set(kube.requests.map(({ path }) => path));
  for (const path of own) t.ok(read.has(path), path);
});

t.test('nodes are read from the cluster, and the result names its dependencies on them', async (t) => {
  const { server, kube } = await setup(t);
  server.push('app', '1', multiArch(['linux/386']));
  const node = (name: string, version: string): object => ({
    metadata: { name, labels: { 'kubernetes.io/hostname': name } },
    status: {
      nodeInfo: { architecture: 'amd64', operatingSystem: 'linux', containerRuntimeVersion: version },
    },
  });
  const first = json({ metadata: { continue: 'next' }, items: [node('new', 'containerd://2.1.4')] });
  kube.script('/api/v1/nodes', first, json({ metadata: {}, items: [node('crio', 'cri-o://1.34.1')] }));
  const { explained, err } = await explain(t, kube, pod(`${server.host}/app:1`));
  t.equal(err, '');
  t.strictSame(explained?.required, ['386', 'amd64']);
  like(t, explained, { excludedNodes: ['crio'], images: [{ dependsOn: { amd64: 'pull mode' } }] });
  const rules = rulesOf(explained);
  t.ok(rules?.includes('depends-on-node') && rules.includes('node-classes'));
});

t.test('files take precedence over the cluster', async (t) => {
  const { kube, arm } = await setup(t);
  const namespace =
    'apiVersion: v1\nkind: Namespace\nmetadata: { name: shop, labels: { arch.example/placement: disabled } }\n';
  const { explained } = await explain(t, kube, `${namespace}---\n${pod(arm)}`);
  t.equal(explained?.outcome, 'skipped');
  const others = kube.requests.filter(
    ({ path }) => !/placementconfigs|rollouts|leases|configmaps|nodes/.test(path),
  );
  t.strictSame(others, [], 'no request for objects in the files');
});

const ours = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'arch.example/v1alpha1',
  kind,
  metadata: { name },
  spec,
});
const inShop = (object: object): object => ({ ...object, metadata: { name: 'web', namespace: 'shop' } });
const preferring = (architecture: string): object => ({
  plugins: { nodeAffinityScoring: { enabled: true, platforms: [{ architecture, weight: 7 }] } },
});

t.test('custom resources are read from the cluster and from files', async (t) => {
  const { kube, both } = await setup(t);
  const app = pod(both);
  const group = '/apis/arch.example/v1alpha1';
  const clusterConfig = ours('ClusterPodPlacementConfig', 'cluster', { preferredArchitecture: 'arm64' });
  kube.script(`${group}/clusterpodplacementconfigs`, json({ items: [clusterConfig] }));
  const by = async (text: string): Promise<[unknown, string]> => {
    const { explained, err } = await explain(t, kube, text);
    return [explained?.preferred, err];
  };
  t.strictSame(await by(app), [[{ architecture: 'arm64', weight: 100 }], '']);
  const podConfig = inShop(ours('PodPlacementConfig', 'web', preferring('amd64')));
  kube.script(`${group}/namespaces/shop/podplacementconfigs`, json({ items: [podConfig] }));
  t.strictSame(await by(app), [[{ architecture: 'amd64', weight: 7 }], '']);
  const inFile = JSON.stringify(ours('PodPlacementConfig', 'web', preferring('arm64')));
  const byFile = [[{ architecture: 'arm64', weight: 7 }], ''];
  t.strictSame(await by(`${app}\n---\n${inFile}`), byFile, 'the file takes precedence');
  const selector = { namespaceSelector: { matchLabels: { team: 'x' } } };
  const other = JSON.stringify(ours('ClusterPodPlacementConfig', 'cluster', selector));
  const shop = JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  const { explained } = await explain(t, kube, [app, other, shop].join('\n---\n'));
  t.equal(explained?.outcome, 'skipped', 'the selector excludes the namespace');
});

t.test('an unknown image leads to a gate only while a controller leads', async (t) => {
  const { server, kube } = await setup(t);
  const lease = (holderIdentity: string, renewed: number): object => ({
    metadata: { name: 'archwright-controller', namespace: 'archwright' },
    spec: { holderIdentity, leaseDurationSeconds: 15, renewTime: new Date(renewed).toISOString() },
  });
  const cases: [about: string, items: object[], args: string[], outcome: string][] = [
    ['led', [lease('a', Date.now())], [], 'gated'],
    ['nobody', [], [], 'allowed-unknown'],
    ['released', [lease('', Date.now())], [], 'allowed-unknown'],
    ['not renewed', [lease('a', Date.now() - 600_000)], [], 'allowed-unknown'],
    ['no leader, but a flag', [], ['--on-unknown-image', 'gate'], 'allowed-unknown'],
    ['a leader, but another flag', [lease('a', Date.now())], ['--on-unknown-image', 'deny'], 'denied'],
  ];
  for (const [about, items, args, outcome] of cases) {
    kube.script('/apis/coordination.k8s.io/v1/leases', json({ items }));
    const { explained } = await explain(t, kube, pod(`${server.host}/missing:1`), ...args);
    t.equal(explained?.outcome, outcome, about);
  }
});

const { digest } = multiArch(['linux/amd64', 'linux/arm64']);

/** The ConfigMap of a note about the image for amd64 and arm64. */
function noted(lacks: string, namespaces: readonly string[], until: number): object {
  const value = { image: 'proxy:1', namespaces, until: new Date(until).toISOString() };
  return {
    metadata: { name: 'archwright-broken-images', namespace: 'archwright' },
    data: { [`${digest.replace(':', '-')}.${lacks}`]: JSON.stringify(value) },
  };
}

t.test('images noted as broken are avoided, as by the webhook', async (t) => {
  const { kube, both } = await setup(t);
  const note = (namespaces: string[], until: number) => noted('arm64', namespaces, until);
  const everywhere = '/api/v1/configmaps';
  const own = '/api/v1/namespaces/system/configmaps';
  const later = Date.now() + 3_600_000;
  const named = ['--config', files(t, { toml: 'namespace = "system"\n' }).toml];
  const cases: [about: string, path: string, items: object[], args: string[], broken: boolean][] = [
    ['seen in the namespace', everywhere, [note(['shop'], later)], [], true],
    ['no notes', everywhere, [], [], false],
    ['in the namespace that the configuration names', own, [note(['shop'], later)], named, true],
  ];
  for (const [about, path, items, args, broken] of cases) {
    kube.script(path, json({ items }));
    const { explained, err, code } = await explain(t, kube, pod(both), ...args);
    t.equal(err, '', about);
    t.equal(code, 0, about);
    t.strictSame(explained?.required, broken ? ['amd64'] : ['amd64', 'arm64'], about);
    t.equal(rulesOf(explained)?.includes('exec-format-error'), broken, about);
    const request = kube.requests.findLast((each) => each.path === path);
    t.equal(request?.query.get('fieldSelector'), 'metadata.name=archwright-broken-images', about);
  }
  kube.script(everywhere, json({ message: 'configmaps is forbidden' }, 403));
  const forbidden = await explain(t, kube, pod(both));
  t.match(forbidden.err, /^[^\n]+ no permission to read the ConfigMap of archwright[^\n]+\n$/);
  t.strictSame(forbidden.explained?.required, ['amd64', 'arm64']);
});

t.test('a noted CPU level is required, and the image is not called broken', async (t) => {
  const { kube, both } = await setup(t);
  const items = [noted('amd64-v3', ['shop'], Date.now() + 3_600_000)];
  kube.script('/api/v1/configmaps', json({ items }));
  const { explained } = await explain(t, kube, pod(both));
  t.strictSame(explained?.required, ['amd64', 'arm64']);
  const rule = explained?.rules.find(({ rule }) => rule === 'cpu-level');
  like(t, rule, { message: /proxy:1 needs x86-64-v3$/ });
  const { levels, broken } = explained as unknown as Record<string, unknown>;
  like(t, levels, [{ digest, level: 'v3' }]);
  t.equal(broken, undefined);
});

t.test('a running pod on a node that cannot run its image', async (t) => {
  const { kube, arm } = await setup(t);
  kube.script('/api/v1/nodes/n1', json({ status: { nodeInfo: { architecture: 'amd64' } } }));
  const wrong = await explain(t, kube, pod(arm, { nodeName: 'n1' }));
  t.strictSame(rulesOf(wrong.explained), ['skip-node-name']);
  like(t, wrong.explained?.warnings, [/arm:1 cannot run here: it has arm64, the node is amd64/]);
  t.equal(wrong.code, 0);
});

t.test('an unreachable cluster is ignored, with one warning', async (t) => {
  const { kube: refusing, arm } = await setup(t);
  const pods = `${pod(arm)}\n---\n${pod(arm, { nodeName: 'n1' })}`;
  const answer = json({ kind: 'Status', message: 'who are you', code: 401 }, 401);
  refusing.script('/api/v1/namespaces/shop', answer);
  const server = createServer(() => undefined);
  const port = await listen(server);
  t.teardown(() => server.close());
  const cases: [what: string, server: string, reason: RegExp][] = [
    ['nobody there', 'https://127.0.0.1:1', /127\.0\.0\.1:1/],
    ['it refuses the credentials', refusing.access.server, /who are you/],
    ['it does not respond', `https://127.0.0.1:${port}`, /./],
  ];
  for (const [what, server, reason] of cases) {
    const { code, err, explained } = await explain(t, { access: { server } }, pods);
    t.equal(code, 0, what);
    t.equal(explained?.outcome, 'placed', what);
    t.match(err, /^archwright: warning: the cluster cannot be used and is ignored: .*\n$/, what);
    like(t, err, reason, what);
  }
});
