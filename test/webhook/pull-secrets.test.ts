/** Pull secrets of pods at admission; `test/cluster/pull-secrets.test.ts` has how they are read and cached. */
import { test } from 'tap';
import type { Secret } from '../../src/kube/api/objects.ts';
import { reveal } from '../../src/telemetry/secret.ts';
import type { ImageRequest, ImageFactsSource } from '../../src/images/facts/facts.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { clusterOf, factsOf, passBudget, podOf, serve, workload } from './support.ts';
import { like } from '../support/like.ts';

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
    lookup: (question) => {
      lookups.push(question);
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
  const { admitPod, lines } = await serve(t, { source: privateRegistry(), cluster });
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
  t.equal(await first('regcerd', 'regcred'), '', 'no warning if another one is accepted');
  t.equal(read.filter((name) => name === 'shop/regcerd').length, 1, 'read once');
  t.equal(JSON.stringify(lines).split('a pull secret of a pod does not exist').length - 1, 2);
});

test('a malformed Secret makes its image unauthorized, because the kubelet would refuse it too', async (t) => {
  const { cluster } = counting({ 'shop/regcred': dockerConfig('{"auths": let-me-in') });
  const source = privateRegistry();
  const { admitPod, lines } = await serve(t, { source, cluster });
  const admitted = await admitPod(['private.example/app:1'], { imagePullSecrets: pullSecrets });
  t.ok(admitted.allowed);
  t.ok(admitted.gated);
  like(t, admitted.warnings, [
    /unauthorized: .*a pull secret, or a credential or plugin of the nodes \(kubeletConfig\)/,
  ]);
  t.equal(source.lookups.length, 0);
  t.notMatch(JSON.stringify([admitted.raw, lines]), 'let-me-in');
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

test('slow reads of Secrets delay admission no longer than the budget', async (t) => {
  const cluster = clusterOf({ secret: () => new Promise(() => undefined) });
  const clock = createFakeClock();
  const { admitPod, metric } = await serve(t, {
    source: privateRegistry(),
    cluster,
    inlineBudgetMs: () => 50,
    clock,
  });
  const admitting = admitPod(['private.example/app:1'], { imagePullSecrets: pullSecrets });
  await passBudget(t, clock, 50);
  t.ok((await admitting).gated);
  t.equal(await metric('archwright_admission_inline_waits_total{outcome="expired"}'), 1);
});
