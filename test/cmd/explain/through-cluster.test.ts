import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { main } from '../../../cmd/program/main.ts';
import { keys } from '../../../src/names/keys.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { image, multiArch } from '../../support/registry/content.ts';
import { run, type Result } from '../run.ts';
import { dockerConfig, files, pullSecret, registry, storeWithConfig, type Explained } from '../world.ts';
import { like } from '../../support/like.ts';

/** A cluster with a controller, and a private registry that accepts only the namespace's pull secret. */
async function shop(
  t: Test,
  settings = '',
  { namespace = 'archwright', name = 'archwright', more = [] as readonly string[] } = {},
) {
  const { store, config: kubeconfigFile } = await storeWithConfig(t);
  const private_ = await registry(t, { auth: { kind: 'basic', users: { ann: 'password-of-ann' } } });
  private_.push('web', '1', multiArch(['linux/amd64', 'linux/arm64']));
  private_.push('old', '1', image('linux/amd64'));
  // `nameOverride` changes the label `name`.
  const labels = { 'app.kubernetes.io/part-of': 'archwright', 'app.kubernetes.io/name': name };
  const putSettings = (text: string) =>
    store.put(`/api/v1/namespaces/${namespace}/configmaps/${name}`, {
      metadata: { labels },
      data: { 'archwright.toml': `name = "archwright"\ncredsDir = "/nowhere"\n${text}` },
    });
  putSettings(settings);
  const config = dockerConfig(private_.host, 'ann', 'password-of-ann');
  store.put('/api/v1/namespaces/shop/secrets/regcred', JSON.parse(pullSecret(config)) as object);
  store.put('/api/v1/namespaces/shop', {});
  store.put('/api/v1/namespaces/shop/serviceaccounts/default', {});
  const url = await controller(t, kubeconfigFile, namespace, more);
  store.callers.serve(`${namespace}/https:${name}-controller:facts`, url);
  const ask = async (...args: readonly string[]): Promise<Result & Asked> => {
    const result = await run([...args, '--kubeconfig', kubeconfigFile]);
    const isJson = result.out.startsWith('{');
    return { ...result, ...(isJson ? (JSON.parse(result.out) as Asked) : { results: [] }) };
  };
  return { store, private_, ask, putSettings };
}

interface Asked {
  readonly lookups?: string;
  readonly results: readonly Explained[];
}

/** Starts the real controller. @returns the URL of its facts API */
async function controller(
  t: Test,
  kubeconfigFile: string,
  namespace: string,
  more: readonly string[],
): Promise<string> {
  const stop = new AbortController();
  const { promise, resolve } = Promise.withResolvers<string>();
  const listen = ['--metrics-listen=127.0.0.1:0', '--facts-listen=127.0.0.1:0'];
  const flags = [...listen, '--namespace', namespace, ...more];
  const running = main(['controller', '--kubeconfig', kubeconfigFile, ...flags], {
    io: {
      env: {},
      stdin: Readable.from([]),
      out: () => undefined,
      err: (line) => {
        const [, url] = /"url":"([^"]+)","msg":"requests for image facts/.exec(line) ?? [];
        if (url !== undefined) resolve(url);
      },
    },
    stop: stop.signal,
  });
  t.teardown(async () => {
    stop.abort('SIGTERM');
    await running;
  });
  return await promise;
}

function putPod(store: KubeStore, name: string, host: string, more: object = {}): void {
  store.put(`/api/v1/namespaces/shop/pods/${name}`, {
    kind: 'Pod',
    spec: {
      containers: [{ name: 'web', image: `${host}/${name}:1` }],
      imagePullSecrets: [{ name: 'regcred' }],
      ...more,
    },
  });
}

const through =
  'through archwright/archwright-controller, with the credentials of its agents and of the pods';

t.test('through the controller', async (t) => {
  const { store, private_, ask, putSettings } = await shop(t, 'preferredArchitecture = "arm64"\n', {
    more: ['--denied-registries=denied.example'],
  });
  putPod(store, 'web', private_.host);

  await t.test("a laptop looks up images there, with the cluster's settings", async (t) => {
    const { code, err, lookups, results } = await ask('explain', '-o', 'json', 'pod/web');
    t.strictSame([code, err], [0, '']);
    t.equal(lookups, through);
    like(t, results, [
      { outcome: 'placed', required: ['amd64', 'arm64'], preferred: [{ architecture: 'arm64' }] },
    ]);
    like(t, results[0]?.images, [{ credentialSource: 'pull-secret', architectures: ['amd64', 'arm64'] }]);
    const [token] = store.received(/serviceaccounts\/default\/token$/);
    like(t, token?.json, { spec: { audiences: ['arch.example/facts'], expirationSeconds: 600 } });
    const [sent] = store.received(/\/proxy\/v1\/facts$/);
    t.notMatch(sent?.body, /token-of-the-user|password-of-ann/, "neither the user's token nor a secret");
    const table = await ask('explain', 'pod', 'web');
    t.match(table.out, `\nImages: looked up ${through}.\n`);

    const local = await ask('explain', '-o', 'json', '--local', 'pod/web');
    t.match(local.lookups, /^from this machine, with no credentials other than the pods’ pull secrets$/);
    const sameSettings = { outcome: 'placed', preferred: [{ architecture: 'arm64' }] };
    like(t, local.results, [sameSettings]);

    const { toml } = files(t, { toml: 'preferredArchitecture = "amd64"\n' });
    const other = await ask('explain', '-o', 'json', 'pod/web', '--config', toml);
    t.equal(other.lookups, through);
    like(t, other.results, [{ preferred: [{ architecture: 'amd64' }] }], 'a file replaces the settings');
  });

  await t.test('the recorded decision comes first, for a pod and for the pods of a workload', async (t) => {
    store.put('/api/v1/nodes/n1', { status: { nodeInfo: { architecture: 'amd64' } } });
    const record = (more: object): string => JSON.stringify({ v: 1, imagesKey: 'x', added: {}, ...more });
    const placed = record({ outcome: 'placed', architectures: ['amd64'] });
    const template = {
      metadata: { labels: { app: 'web' } },
      spec: {
        containers: [{ name: 'web', image: `${private_.host}/old:1` }],
        imagePullSecrets: [{ name: 'regcred' }],
      },
    };
    const spec = { selector: { matchLabels: { app: 'web' } }, template };
    store.put('/apis/apps/v1/namespaces/shop/deployments/web', { spec });
    const pod = (name: string, decision: string, nodeName?: string): void => {
      const metadata = { labels: { app: 'web' }, annotations: { [keys.decision]: decision } };
      store.put(`/api/v1/namespaces/shop/pods/${name}`, { metadata, spec: { ...template.spec, nodeName } });
    };
    pod('web-1', placed, 'n1');
    pod('web-2', placed, 'n1');
    pod('web-3', record({ outcome: 'gated' }));
    const { out, code } = await ask('explain', 'deploy/web');
    t.equal(code, 0);
    t.match(
      out,
      /now +pod web-1 and 1 more on amd64; decided before: placed, requires amd64\n +pod web-3 on no node yet; decided before: gated\n +its pods +placed: admitted, changed by 5 patch operations\n +requires +amd64\n/,
    );
    // To a pod that ran out of time, nothing may have been added. Then it has no record.
    const labels = { [keys.placementState]: 'fallback' };
    store.put('/api/v1/namespaces/shop/pods/late', {
      metadata: { labels },
      spec: { ...template.spec, nodeName: 'n1' },
    });
    t.match((await ask('explain', 'pod/late')).out, /now +on node n1 \(amd64\); decided before: fallback\n/);
    const gated = await ask('explain', 'pod/web-3');
    t.match(gated.out, /\n +now +on no node yet; decided before: gated\n +created again +placed\n/);
    const report = await ask('report', '-n', 'shop');
    t.equal(report.code, 0);
    t.match(report.out, /WORKLOAD +PODS +DECIDED +ON/);
    t.match(report.out, /Pod\/web-1 +1 +placed +amd64 .* no +\S+old:1 has amd64/);
    t.match(report.out, `\nImages: looked up ${through}.\n`);
    const csv = await ask('report', '-n', 'shop', '-o', 'csv');
    t.ok(csv.err.includes(through), csv.err);
  });

  await t.test('a pod with invalid names does not make a report incomplete', async (t) => {
    const containers = [{ name: 'c', image: `a${'.b'.repeat(600)}/c` }];
    putPod(store, 'image', private_.host, { containers });
    putPod(store, 'secret', private_.host, {
      containers: [{ name: 'c', image: `${private_.host}/web:1` }],
      imagePullSecrets: [{ name: 's'.repeat(300) }, { name: 'regcred' }],
    });
    const { code, out, err } = await ask('report', '-o', 'csv');
    t.equal(code, 1, 'one image is unknown');
    t.notMatch(err, /could not be looked up/);
    t.match(out, /shop,Pod,web,.*,yes,\r\n/);
    t.match(out, /shop,Pod,secret,.*,yes,\r\n/);
    t.match(out, /shop,Pod,image,.*,unknown,.*invalid-reference: it is longer than 1024 characters/);
  });

  await t.test('a missing permission is named, and the exit code is 3', async (t) => {
    const rows: [right: string, message: RegExp][] = [
      ['serviceaccounts/default/token', /needs the right to create serviceaccounts\/token/],
      ['proxy/v1/facts', /and services\/proxy in the namespace of archwright/],
    ];
    for (const [right, message] of rows) {
      const end = store.fault(new RegExp(`POST .*/${right}$`), { status: 403, message: 'it is forbidden' });
      for (const command of [['explain', 'pod/web'], ['report']]) {
        const { code, err, lookups } = await ask(...command, '-o', 'json');
        t.strictSame([code, lookups], [3, through], `${right}: ${command[0]}`);
        t.match(err, /images of namespace shop could not be looked up: .*it is forbidden/, right);
        like(t, err, message, right);
      }
      end();
    }
    const end = store.fault(/POST .*\/proxy\/v1\/facts$/, { status: 429, retryAfter: 0, times: 2 });
    t.equal((await ask('explain', 'pod/web')).code, 0, 'requests refused with 429 are repeated');
    end();
  });

  await t.test('without the permission to list ConfigMaps, its usual name is used', async (t) => {
    const ends = [store.fault('GET /api/v1/configmaps', { status: 403, message: 'configmaps is forbidden' })];
    t.equal((await ask('explain', '-o', 'json', 'pod/web')).lookups, through);
    ends.push(
      store.fault(/GET .*\/configmaps\/archwright$/, { status: 403, message: 'configmaps is forbidden' }),
    );
    const { lookups, err } = await ask('explain', '-o', 'json', 'pod/web');
    t.match(lookups, /^from this machine/);
    t.match(
      err,
      /no permission to read the ConfigMap of archwright, .* ask for the Role archwright-explain, or set ARCHWRIGHT_NAMESPACE/,
    );
    for (const end of ends) end();
  });

  await t.test('for an image that the configuration refuses, no registry has answered', async (t) => {
    putPod(store, 'denied', private_.host, { containers: [{ name: 'x', image: 'denied.example/x:1' }] });
    const { out } = await ask('explain', 'pod', 'denied');
    t.match(out, /denied\.example\/x:1: forbidden: not inspected: /);
    t.notMatch(out, /What the registry answered/);
  });

  await t.test('a service account with the permission for other namespaces', async (t) => {
    const as = ['--as-service-account', 'archwright/reporter'];
    const err = /no right to create imagefacts\.arch\.example in shop/;
    const refused = await ask('explain', '-o', 'json', 'pod/web', ...as);
    like(t, refused, { code: 3, err });
    t.match(refused.err, /in shop\. --local looks up images from this machine\n$/, 'that right, no other');
    store.callers.grant(
      'system:serviceaccount:archwright:reporter',
      'create',
      'arch.example/imagefacts',
      'shop',
    );
    t.equal((await ask('explain', '-o', 'json', 'pod/web', ...as)).code, 0);
    t.equal((await ask('explain', 'pod/web', '--as-service-account', 'x')).code, 2);
  });

  await t.test('unknown settings of the cluster are ignored, invalid ones are an error', async (t) => {
    putSettings('newerSetting = true\n');
    t.equal((await ask('explain', 'pod/web')).code, 0);
    putSettings('preferenceMode = "firm"\n');
    const err = /ConfigMap archwright\/archwright:3: preferenceMode/;
    like(t, await ask('explain', 'pod/web'), { code: 2, err });
    putSettings('');
  });

  await t.test('who may read the Secrets of a namespace sees what the registry answered', async (t) => {
    putPod(store, 'web', private_.host, { imagePullSecrets: [] });
    const command =
      'kubectl -n archwright exec deployment/archwright-controller -- archwright explain -n shop pod other\n';
    const { out } = await ask('explain', 'pod', 'web');
    t.match(out, /^Pod shop\/web \(pod\/web in shop\)\n/);
    t.match(out, /unauthorized: 127[^\n]*: 401 for web without a credential: give the pod a pull secret/);
    t.notMatch(out, /What the registry answered/);
    putPod(store, 'web', private_.host, { imagePullSecrets: [{ name: 'regcrad' }] });
    const named = await ask('explain', 'pod', 'web');
    t.match(named.out, /pull secret shop\/regcrad: there is no such Secret/);
    t.notMatch(named.out, /What the registry answered/, 'the cause is known');
    const local = await ask('explain', 'pod', 'web', '--local');
    t.notMatch(local.out, /What the registry answered/);

    // A failure to connect would reveal open ports.
    private_.faults.add(/./, { kind: 'drop' });
    putPod(store, 'other', private_.host, { containers: [{ name: 'x', image: `${private_.host}/other:1` }] });
    const lost = await ask('explain', 'pod', 'other');
    t.match(lost.out, /unavailable: the registry cannot be reached or used now/);
    t.ok(lost.out.endsWith(`\nWhat the registry answered: ${command}`), lost.out);
  });

  await t.test('Secrets in files stay on this machine', async (t) => {
    const { store, private_, ask } = await shop(t);
    const config = dockerConfig(private_.host, 'ann', 'password-of-ann');
    store.remove('/api/v1/namespaces/shop/secrets/regcred');
    const spec = {
      containers: [{ name: 'web', image: `${private_.host}/web:1` }],
      imagePullSecrets: [{ name: 'regcred' }],
    };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'shop' }, spec };
    const { both } = files(t, { both: `${JSON.stringify(pod)}\n---\n${pullSecret(config)}` });
    const { err, results } = await ask('explain', '-o', 'json', '-f', both);
    t.match(err, /Secrets and service accounts in files are not sent to the cluster; --local uses them/);
    like(t, results[0]?.images, [{ unknown: 'unauthorized' }]);
    t.notOk(store.requests.some(({ body }) => body.includes('password-of-ann')));
    const local = await ask('explain', '-o', 'json', '-f', both, '--local');
    like(t, local.results[0]?.images, [{ credentialSource: 'pull-secret' }]);
  });

  await t.test('a release with other names in another namespace is found', async (t) => {
    const release = { namespace: 'tools', name: 'placer' };
    const { store, private_, ask } = await shop(t, 'preferredArchitecture = "arm64"\n', release);
    putPod(store, 'web', private_.host);
    const lookups = 'through tools/placer-controller, with the credentials of its agents and of the pods';
    const explained = await ask('explain', '-o', 'json', 'pod/web');
    like(t, explained, { code: 0, err: '', lookups, results: [{ preferred: [{ architecture: 'arm64' }] }] });
    like(t, await ask('report', '-o', 'json', '-n', 'shop'), { code: 0, err: '', lookups });
  });

  await t.test('without agents, no pod would be gated, and no message blames the registry', async (t) => {
    const { store, private_, ask } = await shop(t, '', {
      more: ['--agents=endpointslices:archwright/archwright-agent'],
    });
    store.put('/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller', {
      spec: { holderIdentity: 'other_1', leaseDurationSeconds: 3600, renewTime: new Date().toISOString() },
    });
    putPod(store, 'web', private_.host);
    const { code, out } = await ask('explain', 'pod/web');
    t.equal(code, 3);
    t.match(out, /decision +allowed-unknown: admitted/);
    t.match(out, /web:1: unavailable: no agents are known; see archwright status\n/);
    t.equal(out.match(/no agents are known/g)?.length, 1, 'the error is printed once');
    t.notMatch(out, /cannot be reached/);
  });
});
