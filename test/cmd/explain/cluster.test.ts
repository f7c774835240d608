import { createServer } from 'node:net';
import t, { type Test } from 'tap';
import type { FactsErrorCode } from '../../../src/images/facts/facts.ts';
import { startTestAgent } from '../../daemon/support.ts';
import { createPki } from '../../fleet/support.ts';
import { factsOf, failureOf } from '../../support/facts.ts';
import { multiArch } from '../../support/registry/content.ts';
import { json } from '../../support/kube-server.ts';
import { listen } from '../../support/listen.ts';
import { cluster, explainIn, pod as podOf, rulesOf, setup } from './explaining.ts';
import { run } from '../run.ts';
import { dockerConfig, files, privateApp, pullSecret, type Explained } from '../world.ts';
import { like } from '../../support/like.ts';

const pod = (image: string, spec: Readonly<Record<string, unknown>> = {}) =>
  podOf({ ...spec, containers: [{ name: 'web', image }] });

const explain = (t: Test, kube: Parameters<typeof explainIn>[1], text: string, ...args: string[]) =>
  explainIn(t, kube, ['-f', '-', ...args], text);

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
function noted(lacks: string): object {
  const until = new Date(Date.now() + 3_600_000).toISOString();
  const value = { image: 'proxy:1', namespaces: ['shop'], until };
  return {
    metadata: { name: 'archwright-broken-images', namespace: 'archwright' },
    data: { [`${digest.replace(':', '-')}.${lacks}`]: JSON.stringify(value) },
  };
}

t.test('images noted as broken are avoided, and CPU levels required, as by the webhook', async (t) => {
  const { kube, both } = await setup(t);
  const everywhere = '/api/v1/configmaps';
  const own = '/api/v1/namespaces/system/configmaps';
  const config = ['--config', files(t, { toml: 'namespace = "system"\n' }).toml];
  const cases: [
    about: string,
    path: string,
    lacks: string,
    args: string[],
    rule: string,
    required: string[],
  ][] = [
    ['broken', everywhere, 'arm64', [], 'exec-format-error', ['amd64']],
    ['in the namespace of the configuration', own, 'arm64', config, 'exec-format-error', ['amd64']],
    ['a CPU level', everywhere, 'amd64-v3', [], 'cpu-level', ['amd64', 'arm64']],
  ];
  for (const [about, path, lacks, args, rule, required] of cases) {
    kube.script(path, json({ items: [noted(lacks)] }));
    const { explained, err, code } = await explain(t, kube, pod(both), ...args);
    t.strictSame([code, err, explained?.required], [0, '', required], about);
    t.ok(rulesOf(explained)?.includes(rule), about);
    const request = kube.requests.findLast((each) => each.path === path);
    t.equal(request?.query.get('fieldSelector'), 'metadata.name=archwright-broken-images', about);
    if (rule === 'cpu-level') like(t, explained, { levels: [{ digest, level: 'v3' }], broken: undefined });
  }
  kube.script(everywhere, json({ message: 'configmaps is forbidden' }, 403));
  const forbidden = await explain(t, kube, pod(both));
  t.match(forbidden.err, /^[^\n]+ no permission to read the ConfigMap of archwright[^\n]+\n$/);
  t.strictSame(forbidden.explained?.required, ['amd64', 'arm64']);
});

/** One agent per group. Each one refuses with a code, or knows every image. */
async function agentsOf(t: Test, codes: readonly (FactsErrorCode | undefined)[]): Promise<readonly string[]> {
  const pki = await createPki(t);
  const agents = await Promise.all(
    codes.map((code, index) =>
      startTestAgent(t, {
        pki,
        nodeName: `node-${index}`,
        fingerprint: () => `${index}-fingerprint-of-a-group`,
        source: { lookup: async ({ image }) => (code ? failureOf(image, code) : factsOf(image)) },
      }),
    ),
  );
  return ['--agents', agents.map(({ agent }) => agent.url).join(','), '--agent-tls-dir', pki.clientDir];
}

t.test('the result names groups that can pull, and excluded nodes', async (t) => {
  const app = 'registry.invalid/shop/app:1';
  const agents = await agentsOf(t, [undefined, 'unauthorized', 'unavailable']);
  const args = ['explain', '-f', '-', '--require-pullable-nodes'];
  const json = await run([...args, '-o', 'json', '--patch', ...agents], { stdin: pod(app) });
  t.equal(json.err, '');
  const why = `${app}: credential group 0-fingerprin can pull it, 1-fingerprin, 2-fingerprin cannot; excluded: node-1; node-2`;
  const rules = [{ rule: 'pullable-nodes', message: why }];
  const [found] = (JSON.parse(json.out) as { results: Explained[] }).results;
  like(t, found, { outcome: 'placed', excludedNodes: ['node-1', 'node-2'] });
  like(
    t,
    found?.rules.filter(({ rule }) => rule === 'pullable-nodes'),
    rules,
  );
  const excluded = /"key":"kubernetes.io\/hostname","operator":"NotIn","values":\["node-1","node-2"\]/;
  like(t, JSON.stringify(found?.patch), excluded);
  t.match((await run([...args, ...agents], { stdin: pod(app) })).out, /^ +excludes +node-1; node-2$/m);
  const without = await run(args, {
    stdin: podOf({ containers: [{ name: 'a', image: app, imagePullPolicy: 'Never' }] }),
  });
  const warning =
    "only agents know which nodes can pull; run explain in the controller's pod, or set --agents";
  t.ok(without.err.includes(warning), 'without agents');
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
