import t from 'tap';
import { type Failure, Provider, tokenReason } from '../../../../daemon/kubelet/provider/provider.ts';
import type { TokenAttributes } from '../../../../daemon/kubelet/config/provider-config.ts';
import type { ProviderRequest } from '../../../../daemon/kubelet/run/execute.ts';
import type {
  PodIdentity,
  ServiceAccountTokens,
} from '../../../../daemon/kubelet/provider/service-account.ts';
import { reveal, secret } from '../../../../src/telemetry/secret.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { execV1 } from '../support.ts';

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
  const tokenRequests: unknown[] = [];
  const failures: Failure[] = [];
  const clock = createFakeClock();
  let password = 'pass';
  let refusal: string | undefined;
  let held: Promise<void> | undefined;
  const tokens: ServiceAccountTokens = {
    serviceAccount: (namespace, name) =>
      name === 'missing'
        ? Promise.reject(new Error('not found'))
        : Promise.resolve({ uid: `uid of ${namespace}/${name}`, annotations }),
    tokenFor: async (pod, uid, audience) => {
      tokenRequests.push([pod.name, uid, audience]);
      await held;
      if (refusal !== undefined) throw new Error(refusal);
      return secret(`token of ${pod.name}`);
    },
  };
  const made = new Provider({
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
    tokenRequests,
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

t.test('a plugin gets the token and the configured annotations', async (t) => {
  const { provide, requests, tokenRequests } = world(
    {},
    { 'a/required': 'r', 'a/optional': 'o', 'a/other': 'x' },
  );
  t.match(await provide(pod()), {
    auth: new Map([['r.example', { username: 'u' }]]),
    serviceAccount: { namespace: 'ns', name: 'account', uid: 'uid of ns/account' },
  });
  t.same(tokenRequests, [['pod', 'uid of ns/account', 'audience']]);
  t.same(requests[0]?.serviceAccountAnnotations, { 'a/required': 'r', 'a/optional': 'o' });
  t.equal(requests[0]?.serviceAccountToken && reveal(requests[0].serviceAccountToken), 'token of pod');
});

t.test('the plugin does not run without its service account', async (t) => {
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
    [{}, {}, undefined, /^it needs a token .* the request names no service account$/],
  ];
  for (const [change, annotations, who, reason] of cases) {
    const { provide, requests } = world(change, annotations);
    t.match(await provide(who), { auth: new Map(), reason });
    t.equal(requests.length, 0);
  }
});

t.test('without tokens, the reason is tokenReason', async (t) => {
  const made = new Provider({
    config: { name: 'p', matchImages: ['r.example'], apiVersion: execV1, tokenAttributes: attributes },
    clock: createFakeClock(),
    execute: () => Promise.reject(new Error('never')),
  });
  t.match(await made.provide('r.example/a', pod()), { auth: new Map(), reason: tokenReason });
});

t.test(
  'a refusal of the API server is backed off for its account, reported once, and cleared by a success',
  async (t) => {
    const { provide, made, tokenRequests, failures, clock, refuse } = world();
    refuse('forbidden by RBAC');
    for (let i = 0; i < 3; i += 1) {
      const reason = 'Error getting service account token ns/account: forbidden by RBAC';
      t.match(await provide(pod()), { auth: new Map(), reason });
    }
    t.equal(tokenRequests.length, 1);
    t.match(failures, [{ image: 'r.example/a', error: { code: 'no-token', temporary: true } }]);
    t.match(made.lastFailure(), { error: { message: /forbidden by RBAC/ } });
    t.match(await provide(pod('pod', 'other')), { reason: /ns\/other: forbidden by RBAC/ });
    t.equal(tokenRequests.length, 2, 'another account is not backed off');
    refuse(undefined);
    await clock.advance(10_000);
    t.equal((await provide(pod())).auth.size, 1);
    t.equal((await provide(pod('pod', 'other'))).auth.size, 1);
    t.equal(made.lastFailure(), undefined);
  },
);

t.test('a service account without the annotation is not a failure', async (t) => {
  const { provide, made, failures } = world({}, {});
  t.match(await provide(pod()), { reason: /required annotation a\/required not found/ });
  t.same([made.lastFailure(), failures], [undefined, []]);
});

t.test('an aborted caller does not wait for the API server', async (t) => {
  const { made, hold } = world();
  const release = hold();
  const stop = new AbortController();
  const waiting = made.provide('r.example/a', pod(), stop.signal);
  stop.abort(new Error('gone'));
  await t.rejects(waiting, { message: 'gone' });
  release();
  t.equal((await made.provide('r.example/a', pod())).auth.size, 1);
});

t.test('a pod without an account, if none is required', async (t) => {
  const { provide, requests, tokenRequests } = world({
    requireServiceAccount: false,
    requiredServiceAccountAnnotationKeys: undefined,
  });
  t.equal((await provide(pod('static', ''))).auth.size, 1);
  t.same([requests, tokenRequests], [[{ image: 'r.example/a' }], []]);
});

t.test('responses are cached by account, or by token', async (t) => {
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

t.test('a token as the password is refused, unless the cache type is Token', async (t) => {
  const shared = world();
  shared.echo('token of pod');
  t.match(await shared.provide(pod()), {
    auth: new Map(),
    reason:
      'Credential provider plugin returned the service account token as the password for image "r.example/a", ' +
      "which is not allowed when service account cache type is not set to 'Token'",
  });
  await shared.provide(pod());
  t.equal(shared.requests.length, 2, 'and not cached');
  const apart = world({ cacheType: 'Token' });
  apart.echo('token of pod');
  t.equal((await apart.provide(pod())).auth.size, 1);
});

t.test('annotations that are too long for a key give a reason', async (t) => {
  const { provide, requests } = world({}, { 'a/required': 'x'.repeat(65_536) });
  t.match(await provide(pod()), { auth: new Map(), reason: /longer than 65535 bytes/ });
  t.equal(requests.length, 0);
});
