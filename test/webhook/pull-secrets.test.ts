import { test } from 'tap';
import { systemClock } from '../../src/async/clock.ts';
import { createPullSecrets } from '../../src/cluster/pull-secrets.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import type { Secret } from '../../src/kube/api/objects.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import type { ImageRequest, ImageFactsSource } from '../../src/images/facts/facts.ts';
import { clusterOf, factsOf, podOf, scripted, serve, workload } from './support.ts';

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

/** Knows `private.example/*` with the right password only. */
function privateRegistry(): ImageFactsSource & { asked: ImageRequest[] } {
  const asked: ImageRequest[] = [];
  return {
    asked,
    lookup: (question) => {
      asked.push(question);
      const [best] = question.pullCredentials;
      if (question.reference.domain !== 'private.example')
        return Promise.resolve(factsOf(question.image, ['amd64']));
      if (best !== undefined && reveal(best.credential.password) === 'let-me-in') {
        return Promise.resolve(factsOf(question.image, ['arm64'], { credentialSource: 'pull-secret' }));
      }
      const error = { code: 'unauthorized' as const, message: 'no credential was accepted' };
      return Promise.resolve(factsOf(question.image, [], { error }));
    },
  };
}

/** A cluster that counts what is read from it. */
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

test('the pod names a secret, and its image is learned with it', async (t) => {
  const { cluster, read } = counting({ 'shop/regcred': regcred });
  const inspector = privateRegistry();
  const { admit, metric } = await serve(t, { inspector, cluster });
  const object = podOf(['private.example/app:1'], { imagePullSecrets: pullSecrets });
  t.strictSame((await admit({ object })).required, ['arm64']);
  t.strictSame((await admit({ object })).required, ['arm64']);
  t.strictSame(read, ['shop/regcred'], 'read once');
  t.equal(inspector.asked.length, 1, 'asked once');
  t.equal(await metric('archwright_pull_secret_reads_total{outcome="found"}'), 1);
});

test('what a pull secret learned is nobody else’s', async (t) => {
  const { cluster } = counting({ 'shop/regcred': regcred });
  const { admitPod } = await serve(t, { inspector: privateRegistry(), cluster });
  const images = ['private.example/app:1'];
  t.strictSame((await admitPod(images, { imagePullSecrets: pullSecrets })).required, ['arm64']);
  const without = await admitPod(images);
  t.ok(without.gated);
  t.match(without.warnings, [/unauthorized/]);
  t.strictSame((await admitPod(images, { imagePullSecrets: pullSecrets })).required, ['arm64']);
});

test('no secret is read for an image that everybody may know', async (t) => {
  const { cluster, read } = counting({ 'shop/regcred': regcred });
  const { admitPod, memory } = await serve(t, { inspector: scripted({}), cluster });
  memory.learn(factsOf('docker.io/library/app:1', ['amd64']));
  t.strictSame((await admitPod(['app:1'], { imagePullSecrets: pullSecrets })).required, ['amd64']);
  t.strictSame(read, []);
});

test('secrets that are missing, of another type or unreadable are left out', async (t) => {
  const opaque: Secret = { ...regcred, type: 'Opaque' };
  const cluster = clusterOf({
    secret: (_namespace, name) =>
      name === 'broken'
        ? Promise.reject(new Error('the API server is away'))
        : Promise.resolve(name === 'opaque' ? opaque : undefined),
  });
  const inspector = privateRegistry();
  const { admitPod, metric } = await serve(t, { inspector, cluster });
  const imagePullSecrets = [{ name: 'missing' }, { name: 'opaque' }, { name: 'broken' }, { name: '' }, {}];
  t.strictSame((await admitPod(['app:1'], { imagePullSecrets })).required, ['amd64']);
  t.strictSame(inspector.asked[0]?.pullCredentials, []);
  t.equal(await metric('archwright_pull_secret_reads_total{outcome="missing"}'), 1);
  t.equal(await metric('archwright_pull_secret_reads_total{outcome="failed"}'), 1);
});

test('what is wrong with the pull secrets is told to the person who creates the pod', async (t) => {
  const opaque: Secret = { ...regcred, metadata: { namespace: 'shop', name: 'opaque' }, type: 'Opaque' };
  const secrets = {
    'shop/regcred': regcred,
    'shop/opaque': opaque,
    'shop/broken': dockerConfig('{', 'broken'),
  };
  const { cluster, read } = counting(secrets);
  const { admitPod, lines } = await serve(t, { inspector: privateRegistry(), cluster });
  const warningsOf = async (...names: string[]) =>
    (await admitPod(['private.example/app:1'], { imagePullSecrets: names.map((name) => ({ name })) }))
      .warnings;
  const prefix = 'archwright: image private.example/app:1: unauthorized: pull secret';
  const first = async (...names: string[]) => (await warningsOf(...names))?.[0] ?? '';
  t.ok(
    (await first('my-regcred')).startsWith(
      `${prefix} shop/my-regcred: there is no such Secret (the registry`,
    ),
  );
  await warningsOf('regcred');
  const typo = await first('regcerd');
  t.ok(
    typo.startsWith(`${prefix} shop/regcerd: there is no such Secret; did you mean regcred? (the registry`),
    typo,
  );
  t.ok((await first('opaque')).startsWith(`${prefix} shop/opaque: it is ignored: the type must be`));
  t.ok((await first('broken')).startsWith(`${prefix} shop/broken: is not valid JSON (the registry`));
  t.equal(await first('regcerd', 'regcred'), '', 'the other one suffices');
  t.equal(read.filter((name) => name === 'shop/regcerd').length, 1, 'read once');
  t.equal(JSON.stringify(lines).split('a pull secret of a pod does not exist').length - 1, 2);
});

test('a name is suggested of the pull secrets of the service account, and none of another namespace', async (t) => {
  const other = { ...regcred, metadata: { namespace: 'bank', name: 'regcred' } };
  const { cluster } = counting({ 'bank/regcred': other });
  const metrics = createMetrics();
  const pullSecrets = createPullSecrets({ cluster, keepMs: 60_000, clock: systemClock, metrics });
  const problemsOf = async (namespace: string, name: string, serviceAccount?: string) => {
    const wanted = { names: [name], ...(serviceAccount !== undefined && { serviceAccount }) };
    return (await pullSecrets.source(namespace, wanted, AbortSignal.timeout(5000))).problems();
  };
  await problemsOf('bank', 'regcred');
  t.match(await problemsOf('shop', 'regcerd'), [{ message: /^there is no such Secret$/ }]);
  t.match(await problemsOf('shop', 'regcerd', 'builder'), [{ message: /; did you mean regcred\?$/ }]);
});

test('a malformed secret makes its image unauthorized: the kubelet would refuse too', async (t) => {
  const { cluster } = counting({ 'shop/regcred': dockerConfig('{"auths": let-me-in') });
  const inspector = privateRegistry();
  const { admitPod, lines } = await serve(t, { inspector, cluster });
  const admitted = await admitPod(['private.example/app:1'], { imagePullSecrets: pullSecrets });
  t.ok(admitted.allowed);
  t.ok(admitted.gated);
  t.match(admitted.warnings, [/unauthorized: .*check the pull secrets/]);
  t.equal(inspector.asked.length, 0);
  t.notMatch(JSON.stringify([admitted.raw, lines]), 'let-me-in');
});

test('a template uses the secrets of its service account where it names none', async (t) => {
  const { cluster, read } = counting({ 'shop/regcred': regcred });
  const { admit } = await serve(t, { inspector: privateRegistry(), cluster });
  const template = (spec: object): object => ({
    spec: { template: { spec: { ...podOf(['private.example/app:1']).spec, ...spec } } },
  });
  const placed = await admit(workload('DaemonSet', template({ serviceAccountName: 'builder' })));
  t.strictSame(placed.required, ['arm64']);
  t.strictSame(read, ['account shop/builder', 'shop/regcred']);

  const other = await admit(workload('DaemonSet', template({})));
  t.equal(other.required, undefined, 'the account "default" has none');
  t.equal(read.at(-1), 'account shop/default');

  const named = await admit(
    workload('DaemonSet', template({ serviceAccountName: 'other', imagePullSecrets: pullSecrets })),
  );
  t.strictSame(named.required, ['arm64']);
  t.notOk(read.includes('account shop/other'), 'its own list replaces the account’s');
});

test('secrets that do not come in time hold nothing up', async (t) => {
  const cluster = clusterOf({ secret: () => new Promise(() => undefined) });
  const { admitPod, metric } = await serve(t, {
    inspector: privateRegistry(),
    cluster,
    inlineBudgetMs: () => 50,
  });
  const started = performance.now();
  const admitted = await admitPod(['private.example/app:1'], { imagePullSecrets: pullSecrets });
  t.ok(admitted.gated);
  t.ok(performance.now() - started < 2000);
  t.equal(await metric('archwright_admission_inline_waits_total{outcome="expired"}'), 1);
});

test('a pod that names a thousand secrets reads a few', async (t) => {
  const { cluster, read } = counting({});
  const { admitPod } = await serve(t, { inspector: privateRegistry(), cluster });
  const imagePullSecrets = Array.from({ length: 1000 }, (_, index) => ({ name: `s${index}` }));
  await admitPod(['app:1'], { imagePullSecrets });
  t.equal(read.length, 20);
});

test('what a large Secret of another type holds is not kept, and large ones do not add up', async (t) => {
  const megabyte = 'x'.repeat(1024 * 1024);
  let reads = 0;
  const pods = (image: string) =>
    Array.from({ length: 18 }, (_, index) => podOf([image], { imagePullSecrets: [{ name: `s${index}` }] }));
  for (const [type, again] of [
    ['Opaque', 0],
    ['kubernetes.io/dockerconfigjson', 18],
  ] as const) {
    reads = 0;
    const cluster = clusterOf({
      secret: (namespace, name) => {
        reads += 1;
        return Promise.resolve({
          metadata: { namespace, name },
          type,
          data: { '.dockerconfigjson': megabyte },
        });
      },
    });
    const { admit } = await serve(t, { inspector: privateRegistry(), cluster });
    for (const pod of pods('private.example/app:1')) await admit({ object: pod });
    t.equal(reads, 18, type);
    for (const pod of pods('private.example/app:2')) await admit({ object: pod });
    t.equal(reads - 18, again, type);
  }
});
