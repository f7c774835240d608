import t from 'tap';
import type { Failure } from '../../../../daemon/kubelet/provider/back-off.ts';
import type { TokenAttributes } from '../../../../daemon/kubelet/config/provider-config.ts';
import { createProvider, tokenReason } from '../../../../daemon/kubelet/provider/provider.ts';
import type { ProviderRequest } from '../../../../daemon/kubelet/run/request.ts';
import type {
  PodIdentity,
  ServiceAccountTokens,
} from '../../../../daemon/kubelet/provider/service-account.ts';
import { reveal, secret } from '../../../../src/telemetry/secret.ts';
import { execV1, stoppedClock } from '../support.ts';

const attributes: TokenAttributes = {
  serviceAccountTokenAudience: 'audience',
  cacheType: 'ServiceAccount',
  requireServiceAccount: true,
  requiredServiceAccountAnnotationKeys: ['a/required'],
  optionalServiceAccountAnnotationKeys: ['a/optional'],
};
const pod = (name = 'pod', serviceAccountName = 'account'): PodIdentity => ({
  namespace: 'ns',
  name,
  uid: `uid of ${name}`,
  serviceAccountName,
});

function world(
  change: Partial<TokenAttributes> = {},
  annotations: Record<string, string> = { 'a/required': 'r', 'a/other': 'o' },
) {
  const requests: ProviderRequest[] = [];
  const asked: unknown[] = [];
  const failures: Failure[] = [];
  const clock = stoppedClock();
  let password = 'pass';
  let refusal: string | undefined;
  let held: Promise<void> | undefined;
  const tokens: ServiceAccountTokens = {
    serviceAccount: (namespace, name) =>
      name === 'missing'
        ? Promise.reject(new Error('not found'))
        : Promise.resolve({ uid: `uid of ${namespace}/${name}`, annotations }),
    tokenFor: async (pod, uid, audience) => {
      asked.push([pod.name, uid, audience]);
      await held;
      if (refusal !== undefined) throw new Error(refusal);
      return secret(`token of ${pod.name}`);
    },
  };
  const made = createProvider({
    config: {
      name: 'p',
      matchImages: ['r.example'],
      defaultCacheDurationMs: 60_000,
      apiVersion: execV1,
      tokenAttributes: { ...attributes, ...change },
    },
    clock,
    tokens,
    onFailure: (failure) => failures.push(failure),
    execute: (request) => {
      requests.push(request);
      const auth = new Map([['r.example', { username: 'u', password: secret(password) }]]);
      return Promise.resolve({ cacheKeyType: 'Image', auth });
    },
  });
  return {
    made,
    requests,
    asked,
    failures,
    clock,
    refuse: (message: string | undefined) => (refusal = message),
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    echo: (text: string) => (password = text),
    provide: (who?: PodIdentity) => made.provide('r.example/a', who),
  };
}

t.test('a plugin gets the token, and the annotations that it named', async (t) => {
  const { provide, requests, asked } = world({}, { 'a/required': 'r', 'a/optional': 'o', 'a/other': 'x' });
  t.match(await provide(pod()), {
    auth: new Map([['r.example', { username: 'u' }]]),
    serviceAccount: { namespace: 'ns', name: 'account', uid: 'uid of ns/account' },
  });
  t.same(asked, [['pod', 'uid of ns/account', 'audience']]);
  t.same(requests[0]?.serviceAccountAnnotations, { 'a/required': 'r', 'a/optional': 'o' });
  t.equal(requests[0]?.serviceAccountToken && reveal(requests[0].serviceAccountToken), 'token of pod');
});

t.test('without what it needs it is not run', async (t) => {
  const cases: [
    Partial<TokenAttributes>,
    Record<string, string>,
    PodIdentity | undefined,
    string | RegExp,
  ][] = [
    [{}, {}, pod('pod', ''), 'Service account name is empty for pod ns/pod'],
    [
      {},
      {},
      pod(),
      'Failed to get service account data ns/account: required annotation a/required not found',
    ],
    [{}, {}, pod('pod', 'missing'), 'Failed to get service account ns/missing: not found'],
    [{}, {}, undefined, /^it needs a token .* the question names no service account$/],
  ];
  for (const [change, annotations, who, reason] of cases) {
    const { provide, requests } = world(change, annotations);
    t.match(await provide(who), { auth: new Map(), reason });
    t.equal(requests.length, 0);
  }
});

t.test('where nobody may ask for tokens, it is left out', async (t) => {
  const made = createProvider({
    config: { name: 'p', matchImages: ['r.example'], apiVersion: execV1, tokenAttributes: attributes },
    clock: stoppedClock(),
    execute: () => Promise.reject(new Error('never')),
  });
  t.match(await made.provide('r.example/a', pod()), { auth: new Map(), reason: tokenReason });
});

t.test('what the cluster refuses is paused for that account, told once, and made up for', async (t) => {
  const { provide, made, asked, failures, clock, refuse } = world();
  refuse('forbidden by RBAC');
  for (let i = 0; i < 3; i += 1) {
    const reason = 'Error getting service account token ns/account: forbidden by RBAC';
    t.match(await provide(pod()), { auth: new Map(), reason });
  }
  t.equal(asked.length, 1);
  t.match(failures, [{ image: 'r.example/a', error: { code: 'no-token', temporary: true } }]);
  t.match(made.lastFailure(), { error: { message: /forbidden by RBAC/ } });
  t.match(await provide(pod('pod', 'other')), { reason: /ns\/other: forbidden by RBAC/ });
  t.equal(asked.length, 2, 'another account is asked for');
  refuse(undefined);
  clock.at = 10_000;
  t.equal((await provide(pod())).auth.size, 1);
  t.equal((await provide(pod('pod', 'other'))).auth.size, 1);
  t.equal(made.lastFailure(), undefined);
});

t.test('a workload that did not ask for it is no failure', async (t) => {
  const { provide, made, failures } = world({}, {});
  t.match(await provide(pod()), { reason: /required annotation a\/required not found/ });
  t.same([made.lastFailure(), failures], [undefined, []]);
});

t.test('who stops waiting does not wait for the cluster', async (t) => {
  const { made, hold } = world();
  const release = hold();
  const stop = new AbortController();
  const waiting = made.provide('r.example/a', pod(), stop.signal);
  stop.abort(new Error('gone'));
  await t.rejects(waiting, { message: 'gone' });
  release();
  t.equal((await made.provide('r.example/a', pod())).auth.size, 1);
});

t.test('a pod without an account is served where none is required', async (t) => {
  const { provide, requests, asked } = world({
    requireServiceAccount: false,
    requiredServiceAccountAnnotationKeys: undefined,
  });
  t.equal((await provide(pod('static', ''))).auth.size, 1);
  t.same([requests, asked], [[{ image: 'r.example/a' }], []]);
});

t.test('answers are kept apart by account, or by token', async (t) => {
  for (const [cacheType, runs] of [
    ['ServiceAccount', 1],
    ['Token', 2],
  ] as const) {
    const { provide, requests } = world({ cacheType });
    await provide(pod('one'));
    await provide(pod('one'));
    await provide(pod('two'));
    t.equal(requests.length, runs, cacheType);
    await provide(pod('one', 'other'));
    t.equal(requests.length, runs + 1, 'another account');
  }
});

t.test('a token handed out as a password is refused, unless each token is kept apart', async (t) => {
  const shared = world();
  shared.echo('token of pod');
  t.match(await shared.provide(pod()), {
    auth: new Map(),
    reason:
      'Credential provider plugin returned the service account token as the password for image "r.example/a", ' +
      "which is not allowed when service account cache type is not set to 'Token'",
  });
  await shared.provide(pod());
  t.equal(shared.requests.length, 2, 'and not kept');
  const apart = world({ cacheType: 'Token' });
  apart.echo('token of pod');
  t.equal((await apart.provide(pod())).auth.size, 1);
});

t.test('annotations too long for a key are a reason, not a crash', async (t) => {
  const { provide, requests } = world({}, { 'a/required': 'x'.repeat(65_536) });
  t.match(await provide(pod()), { auth: new Map(), reason: /longer than 65535 bytes/ });
  t.equal(requests.length, 0);
});
