/**
 * The credentials of pods at admission: pull secrets, service accounts, none in a dry run.
 * `test/cluster/pull-secrets.test.ts` has how Secrets are read and cached.
 */
import { test } from 'tap';
import type { Secret } from '../../src/kube/api/objects.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import { type ImageRequest, type ImageFactsSource, createRequestOf } from '../../src/images/facts/facts.ts';
import { defaultCacheTimes } from '../support/facts.ts';
import { clusterOf, freshFacts, podOf, scripted, serve, workload } from './support.ts';

const pullSecrets = [{ name: 'regcred' }];

function dockerConfig(text: string, name = 'regcred'): Secret {
  return {
    metadata: { namespace: 'shop', name },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(text).toString('base64') },
  };
}
const regcred = dockerConfig(
  JSON.stringify({ auths: { 'private.example': { username: 'robot', password: 'let-me-in' } } }),
);

/** Knows `private.example/*`, but only with the correct password. */
function privateRegistry(): ImageFactsSource & { lookups: ImageRequest[] } {
  const lookups: ImageRequest[] = [];
  return {
    lookups,
    lookup: (request) => {
      lookups.push(request);
      const [best] = request.pullCredentials;
      if (request.reference.domain !== 'private.example')
        return Promise.resolve(freshFacts(request.image, ['amd64']));
      if (best !== undefined && reveal(best.credential.password) === 'let-me-in') {
        return Promise.resolve(freshFacts(request.image, ['arm64'], { credentialSource: 'pull-secret' }));
      }
      const error = { code: 'unauthorized' as const, message: 'no credential was accepted' };
      return Promise.resolve(freshFacts(request.image, [], { error }));
    },
  };
}

/** A cluster that records reads. */
function counting(secrets: Readonly<Record<string, Secret>>): {
  cluster: ReturnType<typeof clusterOf>;
  read: string[];
} {
  const read: string[] = [];
  const cluster = clusterOf({
    secret: (namespace, name) => {
      read.push(`${namespace}/${name}`);
      return Promise.resolve(secrets[`${namespace}/${name}`]);
    },
    serviceAccountPullSecrets: (namespace, name) => {
      read.push(`account ${namespace}/${name}`);
      return Promise.resolve(name === 'builder' ? ['regcred'] : []);
    },
  });
  return { cluster, read };
}

test("a private image is looked up with the pod's pull secret", async (t) => {
  const { cluster, read } = counting({ 'shop/regcred': regcred });
  const source = privateRegistry();
  const { admit, metric } = await serve(t, { source, cluster });
  const object = podOf(['private.example/app:1'], { imagePullSecrets: pullSecrets });
  t.strictSame((await admit({ object })).required, ['arm64']);
  t.strictSame((await admit({ object })).required, ['arm64']);
  t.strictSame(read, ['shop/regcred'], 'read once');
  t.equal(source.lookups.length, 1, 'one lookup');
  t.equal(await metric('archwright_pull_secret_reads_total{outcome="found"}'), 1);
});

test('problems of pull secrets lead to a warning for the user who creates the pod', async (t) => {
  const opaque: Secret = { ...regcred, metadata: { namespace: 'shop', name: 'opaque' }, type: 'Opaque' };
  const secrets = {
    'shop/regcred': regcred,
    'shop/opaque': opaque,
    'shop/broken': dockerConfig('{', 'broken'),
  };
  const { cluster, read } = counting(secrets);
  const source = privateRegistry();
  const { admitPod, lines } = await serve(t, { source, cluster });
  const first = async (...names: string[]) => {
    const imagePullSecrets = names.map((name) => ({ name }));
    return (await admitPod(['private.example/app:1'], { imagePullSecrets })).warnings[0] ?? '';
  };
  let lookups = 0;
  for (const [name, problem] of [
    ['my-regcred', 'there is no such Secret (the registry'],
    ['regcred', undefined],
    ['regcerd', 'there is no such Secret; did you mean regcred? (the registry'],
    ['opaque', 'it is ignored: the type must be'],
    ['broken', 'is not valid JSON (the registry'],
  ] as const) {
    lookups = source.lookups.length;
    const prefix = `archwright: image private.example/app:1: unauthorized: pull secret shop/${name}: `;
    const warning = await first(name);
    t.ok(problem === undefined ? warning === '' : warning.startsWith(prefix + problem), warning);
  }
  t.equal(source.lookups.length, lookups, 'the kubelet would refuse the broken Secret too');
  t.equal(await first('regcerd', 'regcred'), '', 'no warning if another one is accepted');
  t.equal(read.filter((name) => name === 'shop/regcerd').length, 1, 'read once');
  t.equal(JSON.stringify(lines).split('a pull secret of a pod does not exist').length - 1, 2);
});

test('a template without pull secrets uses those of its service account', async (t) => {
  const { cluster, read } = counting({ 'shop/regcred': regcred });
  const { admit } = await serve(t, { source: privateRegistry(), cluster });
  const template = (spec: object): object => ({
    spec: { template: { spec: { ...podOf(['private.example/app:1']).spec, ...spec } } },
  });
  const placed = await admit(workload('DaemonSet', template({ serviceAccountName: 'builder' })));
  t.strictSame(placed.required, ['arm64']);
  t.strictSame(read, ['account shop/builder', 'shop/regcred']);

  const other = await admit(workload('DaemonSet', template({})));
  t.equal(other.required, undefined, 'the account "default" has no pull secret');
  t.equal(read.at(-1), 'account shop/default');

  const named = await admit(
    workload('DaemonSet', template({ serviceAccountName: 'other', imagePullSecrets: pullSecrets })),
  );
  t.strictSame(named.required, ['arm64']);
  t.notOk(read.includes('account shop/other'), 'its own list replaces the account’s');
});

/** Knows images only for the account `a` of the namespace `shop`. */
function forAccountA(): ImageFactsSource & { lookups: ImageRequest[] } {
  const lookups: ImageRequest[] = [];
  return {
    lookups,
    lookup: (request) => {
      lookups.push(request);
      const { image, serviceAccount } = request;
      const credentialSource = 'service-account' as const;
      if (serviceAccount?.namespace === 'shop' && serviceAccount.name === 'a')
        return Promise.resolve(freshFacts(image, ['arm64'], { credentialSource }));
      const error = { code: 'unauthorized' as const, message: 'no credential was accepted' };
      return Promise.resolve(freshFacts(image, [], { credentialSource, error }));
    },
  };
}

/** As with `serviceAccountTokens`. */
const requestOf = createRequestOf(defaultCacheTimes, true);

const pod = (account?: string) =>
  podOf(['app:1'], account === undefined ? {} : { serviceAccountName: account });

test('facts learned with a service account serve only pods of that account', async (t) => {
  const source = forAccountA();
  const { admit } = await serve(t, { source, requestOf });
  const placed = async (account?: string, namespace = 'shop'): Promise<boolean> =>
    (await admit({ object: pod(account), namespace })).required?.join() === 'arm64';
  t.equal(await placed('b'), false);
  t.equal(await placed('a'), true);
  for (const other of ['b', 'default', undefined]) t.equal(await placed(other), false, other ?? 'none');
  t.equal(await placed('a', 'other'), false, 'an account of the same name in another namespace');
  t.equal(await placed('a'), true);
  t.strictSame(
    source.lookups.map(
      ({ serviceAccount: { namespace, name } = { namespace: '', name: '' } }) => `${namespace}/${name}`,
    ),
    ['shop/b', 'shop/a', 'shop/default', 'other/a'],
    'one lookup per account; a pod without one has the default account',
  );
});

test('images of a template are looked up with its account', async (t) => {
  const source = forAccountA();
  const { admit } = await serve(t, { source, requestOf });
  const template = (account: string) => ({ spec: { template: { spec: pod(account).spec } } });
  t.strictSame((await admit(workload('DaemonSet', template('a')))).required, ['arm64']);
  t.equal((await admit(workload('DaemonSet', template('b')))).required, undefined);
});

test('a dry run causes no lookups, a real request does', async (t) => {
  const source = scripted({ 'app:1': ['arm64'], 'app:2': ['arm64'], 'old:1': ['amd64'] });
  let secrets = 0;
  const cluster = clusterOf({
    nodeArchitecture: () => 'arm64',
    secret: () => {
      secrets += 1;
      return Promise.resolve(undefined);
    },
  });
  const { admit } = await serve(t, { source, cluster });
  const pod = podOf(['app:1'], { imagePullSecrets: [{ name: 'regcred' }] });
  const running = podOf(['old:1'], { nodeName: 'n' });
  const disjoint = { spec: { template: podOf(['app:1', 'old:1']) } };
  const requests = [
    { object: pod },
    workload('DaemonSet', { spec: { template: pod } }),
    workload('Deployment', disjoint),
    { operation: 'UPDATE', object: running, oldObject: podOf(['app:1'], { nodeName: 'n' }) },
  ];
  for (const request of requests) t.equal((await admit({ ...request, dryRun: true })).allowed, true);
  t.strictSame([source.lookups.length, secrets], [0, 0]);

  t.strictSame((await admit({ object: podOf(['app:1']) })).required, ['arm64']);
  const lookups = source.lookups.length;
  t.strictSame(
    (await admit({ object: podOf(['app:1']), dryRun: true })).required,
    ['arm64'],
    'from the cache',
  );
  t.equal(source.lookups.length, lookups);
  await admit({ object: pod });
  t.equal(secrets, 0, 'shared facts need no Secret');
  await admit({ object: podOf(['app:2'], { imagePullSecrets: [{ name: 'regcred' }] }) });
  t.equal(secrets, 1);
});
