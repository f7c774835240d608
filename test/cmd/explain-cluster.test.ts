import { createServer } from 'node:net';
import t, { type Test } from 'tap';
import { image, multiArch } from '../support/registry/content.ts';
import { json } from '../support/kube-server.ts';
import { listen } from '../support/listen.ts';
import { startTestAgent } from '../daemon/support.ts';
import { factsOf } from '../fleet/support.ts';
import { run } from './run.ts';
import { cluster, explainIn, pod as podOf } from './explaining.ts';
import { dockerConfig, files, pullSecret, registry, type Explained } from './world.ts';

const pod = (image: string, spec: Readonly<Record<string, unknown>> = {}) =>
  podOf({ ...spec, containers: [{ name: 'web', image }] });

const explain = (t: Test, kube: Parameters<typeof explainIn>[1], text: string, ...args: string[]) =>
  explainIn(t, kube, ['-f', '-', ...args], text);

t.test('pull secrets and namespace labels come from the cluster, by GET', async (t) => {
  const private_ = await registry(t, { auth: { kind: 'basic', users: { ann: 'password-of-ann' } } });
  private_.push('app', '1', image('linux/arm64'));
  const app = `${private_.host}/app:1`;
  const kube = await cluster(t);
  const secret: unknown = JSON.parse(pullSecret(dockerConfig(private_.host, 'ann', 'password-of-ann')));
  kube.script('/api/v1/namespaces/shop', json({ metadata: { name: 'shop', labels: {} } }));
  kube.script('/api/v1/namespaces/shop/secrets/regcred', json(secret));
  kube.script(
    '/api/v1/namespaces/shop/serviceaccounts/default',
    json({ imagePullSecrets: [{ name: 'regcred' }] }),
  );
  kube.script(
    '/api/v1/namespaces/off',
    json({ metadata: { name: 'off', labels: { 'arch.example/placement': 'disabled' } } }),
  );

  const named = await explain(t, kube, pod(app, { imagePullSecrets: [{ name: 'regcred' }] }));
  t.equal(named.explained?.namespace, 'shop', 'the namespace of the context');
  t.equal(named.explained?.images[0]?.credentialSource, 'pull-secret');
  t.equal(named.err, '');
  const account = await explain(t, kube, pod(app));
  t.equal(account.explained?.images[0]?.credentialSource, 'pull-secret', 'of the service account');
  const off = await explain(t, kube, pod(app), '-n', 'off');
  t.same(
    off.explained?.rules.map(({ rule }) => rule),
    ['skip-disabled-by-namespace'],
  );
  const gone = await explain(t, kube, pod(app, { imagePullSecrets: [{ name: 'gone' }] }));
  t.match(gone.err, /pull secret shop\/gone is not in the files or in the cluster/);
  t.equal(gone.explained?.images[0]?.unknown, 'unauthorized');
  t.ok(kube.requests.every(({ authorization }) => authorization === 'Bearer token-of-the-user'));
  t.ok(kube.requests.every(({ query }) => !query.has('watch')));
});

t.test("objects that decide and may not be read get a warning; archwright's own do not", async (t) => {
  const open = await registry(t);
  open.push('app', '1', image('linux/arm64'));
  const kube = await cluster(t);
  const forbidden = json({ message: 'it is forbidden' }, 403);
  const told = [
    '/api/v1/namespaces/shop',
    '/api/v1/namespaces/shop/serviceaccounts/default',
    '/apis/arch.example/v1alpha1/namespaces/shop/podplacementconfigs',
  ];
  const own = ['/api/v1/configmaps', '/apis/coordination.k8s.io/v1/leases'];
  for (const path of [...told, ...own]) kube.script(path, forbidden);
  const { explained, err, code } = await explain(t, kube, pod(`${open.host}/app:1`));
  t.equal(code, 0);
  t.same(explained?.required, ['arm64']);
  const [settings, ...others] = err.trim().split('\n');
  t.match(settings, /no permission to read the ConfigMap of archwright, so its settings are unknown/);
  t.same(
    others.sort(),
    told.map((path) => `archwright: warning: no permission to read ${path}; the decision ignores it`).sort(),
  );
  for (const path of own)
    t.ok(
      kube.requests.some((request) => request.path === path),
      path,
    );
});

t.test('nodes come from the cluster, and what the result depends on is told', async (t) => {
  const open = await registry(t);
  open.push('app', '1', multiArch(['linux/386']));
  const kube = await cluster(t);
  const node = (name: string, version: string): object => ({
    metadata: { name, labels: { 'kubernetes.io/hostname': name } },
    status: {
      nodeInfo: { architecture: 'amd64', operatingSystem: 'linux', containerRuntimeVersion: version },
    },
  });
  const page = (items: readonly object[], more?: string) => json({ metadata: { continue: more }, items });
  kube.script(
    '/api/v1/nodes',
    page([node('new', 'containerd://2.1.4')], 'next'),
    page([node('crio', 'cri-o://1.34.1')]),
  );
  const { explained, err } = await explain(t, kube, pod(`${open.host}/app:1`));
  t.equal(err, '');
  t.same(explained?.required, ['386', 'amd64']);
  t.match(explained, { excludedNodes: ['crio'], images: [{ dependsOn: { amd64: 'pull mode' } }] });
  const rules = explained?.rules.map(({ rule }) => rule);
  t.ok(rules?.includes('depends-on-node') && rules.includes('node-classes'));
});

t.test('files win over the cluster', async (t) => {
  const open = await registry(t);
  open.push('app', '1', image('linux/arm64'));
  const kube = await cluster(t);
  const namespace =
    'apiVersion: v1\nkind: Namespace\nmetadata: { name: shop, labels: { arch.example/placement: disabled } }\n';
  const { explained } = await explain(t, kube, `${namespace}---\n${pod(`${open.host}/app:1`)}`);
  t.equal(explained?.outcome, 'skipped');
  const others = kube.requests.filter(
    ({ path }) => !/placementconfigs|rollouts|leases|configmaps|nodes/.test(path),
  );
  t.same(others, [], 'nothing is asked that the files say');
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

t.test('custom resources come from the cluster and from the files', async (t) => {
  const open = await registry(t);
  open.push('both', '1', multiArch(['linux/amd64', 'linux/arm64']));
  const app = pod(`${open.host}/both:1`);
  const kube = await cluster(t);
  const group = '/apis/arch.example/v1alpha1';
  const clusterConfig = ours('ClusterPodPlacementConfig', 'cluster', { preferredArchitecture: 'arm64' });
  kube.script(`${group}/clusterpodplacementconfigs`, json({ items: [clusterConfig] }));
  const by = async (text: string): Promise<[unknown, string]> => {
    const { explained, err } = await explain(t, kube, text);
    return [explained?.preferred, err];
  };
  t.same(await by(app), [[{ architecture: 'arm64', weight: 100 }], '']);
  const podConfig = inShop(ours('PodPlacementConfig', 'web', preferring('amd64')));
  kube.script(`${group}/namespaces/shop/podplacementconfigs`, json({ items: [podConfig] }));
  t.same(await by(app), [[{ architecture: 'amd64', weight: 7 }], '']);
  const inFile = JSON.stringify(ours('PodPlacementConfig', 'web', preferring('arm64')));
  t.same(await by(`${app}\n---\n${inFile}`), [[{ architecture: 'arm64', weight: 7 }], ''], 'the file wins');
  const selector = { namespaceSelector: { matchLabels: { team: 'x' } } };
  const other = JSON.stringify(ours('ClusterPodPlacementConfig', 'cluster', selector));
  const shop = JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  const { explained } = await explain(t, kube, [app, other, shop].join('\n---\n'));
  t.equal(explained?.outcome, 'skipped', 'the selector leaves the namespace out');
});

t.test('a gate is what happens while a controller leads', async (t) => {
  const open = await registry(t);
  const kube = await cluster(t);
  const lease = (holderIdentity: string, renewed: number): object => ({
    metadata: { name: 'archwright-controller', namespace: 'archwright' },
    spec: { holderIdentity, leaseDurationSeconds: 15, renewTime: new Date(renewed).toISOString() },
  });
  const cases: [about: string, items: object[], args: string[], outcome: string][] = [
    ['led', [lease('a', Date.now())], [], 'gated'],
    ['nobody', [], [], 'allowed-unknown'],
    ['released', [lease('', Date.now())], [], 'allowed-unknown'],
    ['not renewed', [lease('a', Date.now() - 600_000)], [], 'allowed-unknown'],
    ['nobody, but somebody wants it', [], ['--on-unknown-image', 'gate'], 'allowed-unknown'],
    [
      'led, but somebody wants something else',
      [lease('a', Date.now())],
      ['--on-unknown-image', 'deny'],
      'denied',
    ],
  ];
  for (const [about, items, args, outcome] of cases) {
    kube.script('/apis/coordination.k8s.io/v1/leases', json({ items }));
    const { explained } = await explain(t, kube, pod(`${open.host}/missing:1`), ...args);
    t.equal(explained?.outcome, outcome, about);
  }
});

t.test('images that ended with an exec format error are avoided as by the webhook', async (t) => {
  const open = await registry(t);
  const both = multiArch(['linux/amd64', 'linux/arm64']);
  open.push('both', '1', both);
  const kube = await cluster(t);
  const note = (namespaces: string[], until: number): object => ({
    metadata: { name: 'archwright-broken-images', namespace: 'archwright' },
    data: {
      [`${both.digest.replace(':', '-')}.arm64`]: JSON.stringify({
        image: 'both:1',
        namespaces,
        until: new Date(until).toISOString(),
      }),
    },
  });
  const everywhere = '/api/v1/configmaps';
  const own = '/api/v1/namespaces/system/configmaps';
  const later = Date.now() + 3_600_000;
  const named = ['--config', files(t, { toml: 'namespace = "system"\n' }).toml];
  const cases: [about: string, path: string, items: object[], args: string[], broken: boolean][] = [
    ['seen in the namespace', everywhere, [note(['shop'], later)], [], true],
    ['seen in another one', everywhere, [note(['bank'], later)], [], false],
    ['expired', everywhere, [note(['shop'], Date.now() - 1000)], [], false],
    ['no notes', everywhere, [], [], false],
    ['in the namespace that the configuration names', own, [note(['shop'], later)], named, true],
  ];
  for (const [about, path, items, args, broken] of cases) {
    kube.script(path, json({ items }));
    const { explained, err, code } = await explain(t, kube, pod(`${open.host}/both:1`), ...args);
    t.equal(err, '', about);
    t.equal(code, 0, about);
    t.same(explained?.required, broken ? ['amd64'] : ['amd64', 'arm64'], about);
    t.equal(explained?.rules.some(({ rule }) => rule === 'exec-format-error') ?? false, broken, about);
    const asked = kube.requests.findLast((request) => request.path === path);
    t.equal(asked?.query.get('fieldSelector'), 'metadata.name=archwright-broken-images', about);
  }
  kube.script(everywhere, json({ message: 'configmaps is forbidden' }, 403));
  const forbidden = await explain(t, kube, pod(`${open.host}/both:1`));
  t.match(
    forbidden.err,
    /^[^\n]+ no permission to read the ConfigMap of archwright[^\n]+\n$/,
    'nothing else',
  );
  t.same(forbidden.explained?.required, ['amd64', 'arm64']);
});

t.test('a level that pods of the namespace missed is required, and is no fault of the image', async (t) => {
  const open = await registry(t);
  const both = multiArch(['linux/amd64', 'linux/arm64']);
  open.push('both', '1', both);
  const kube = await cluster(t);
  const value = {
    image: 'both:1',
    namespaces: ['shop'],
    until: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const data = { [`${both.digest.replace(':', '-')}.amd64-v3`]: JSON.stringify(value) };
  const metadata = { name: 'archwright-broken-images', namespace: 'archwright' };
  kube.script('/api/v1/configmaps', json({ items: [{ metadata, data }] }));
  const { explained } = await explain(t, kube, pod(`${open.host}/both:1`));
  t.same(explained?.required, ['amd64', 'arm64']);
  const rule = explained?.rules.find(({ rule }) => rule === 'cpu-level');
  t.match(rule, { message: /both:1 needs x86-64-v3$/ });
  const { levels, broken } = explained as unknown as Record<string, unknown>;
  t.match(levels, [{ digest: both.digest, level: 'v3' }]);
  t.equal(broken, undefined);
});

t.test('a pod that runs already, on a node that cannot run its image', async (t) => {
  const open = await registry(t);
  open.push('app', '1', image('linux/arm64'));
  open.push('both', '1', multiArch(['linux/amd64', 'linux/arm64']));
  const kube = await cluster(t);
  kube.script('/api/v1/nodes/n1', json({ status: { nodeInfo: { architecture: 'amd64' } } }));
  const wrong = await explain(t, kube, pod(`${open.host}/app:1`, { nodeName: 'n1' }));
  t.same(
    wrong.explained?.rules.map(({ rule }) => rule),
    ['skip-node-name'],
  );
  t.match(wrong.explained?.warnings, [/app:1 cannot run here: it has arm64, the node is amd64/]);
  t.equal(wrong.code, 0);
  const right = await explain(t, kube, pod(`${open.host}/both:1`, { nodeName: 'n1' }));
  t.same(right.explained?.warnings, []);
  const unknown = await explain(t, kube, pod(`${open.host}/app:1`, { nodeName: 'n2' }));
  t.same(unknown.explained?.warnings, []);
});

t.test('a cluster that gives no answer is left out, with one line', async (t) => {
  const open = await registry(t);
  open.push('app', '1', image('linux/arm64'));
  const pods = `${pod(`${open.host}/app:1`)}\n---\n${pod(`${open.host}/app:1`, { nodeName: 'n1' })}`;
  const refusing = await cluster(t);
  const answer = json({ kind: 'Status', message: 'who are you', code: 401 }, 401);
  refusing.script('/api/v1/namespaces/shop', answer);
  const silent = createServer(() => undefined);
  const port = await listen(silent);
  t.teardown(() => silent.close());
  const cases: [what: string, server: string, reason: RegExp][] = [
    ['nobody there', 'https://127.0.0.1:1', /127\.0\.0\.1:1/],
    ['it refuses us', refusing.access.server, /who are you/],
    ['it is silent', `https://127.0.0.1:${port}`, /./],
  ];
  for (const [what, server, reason] of cases) {
    const { code, err, explained } = await explain(t, { access: { server } }, pods);
    t.equal(code, 0, what);
    t.equal(explained?.outcome, 'placed', what);
    t.match(err, /^archwright: warning: the cluster does not respond and is ignored: .*\n$/, what);
    t.match(err, reason, what);
  }
});

t.test('agents in place of registries', async (t) => {
  const { agent, pki } = await startTestAgent(t, {
    inspector: { lookup: ({ image }) => Promise.resolve(factsOf(image)) },
  });
  const app = 'registry.invalid/app:1';
  const args = ['explain', '-f', '-', '-o', 'json', '--agents', agent.url, '--agent-tls-dir', pki.clientDir];
  const { code, out, err } = await run(args, { stdin: pod(app) });
  t.equal(code, 0, err);
  const [explained] = (JSON.parse(out) as { results: Explained[] }).results;
  t.equal(explained?.outcome, 'placed');
  t.equal(explained?.images[0]?.endpoint, factsOf(app).endpoint);
});
