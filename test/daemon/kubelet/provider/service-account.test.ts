import { inspect } from 'node:util';
import t, { type Test } from 'tap';
import { type PluginFailure, Provider } from '../../../../daemon/kubelet/provider/provider.ts';
import type { TokenAttributes } from '../../../../daemon/kubelet/config/provider-config.ts';
import type { ProviderRequest } from '../../../../daemon/kubelet/run/execute.ts';
import {
  type ServiceAccountTokens,
  createServiceAccountTokens,
} from '../../../../daemon/kubelet/provider/service-account.ts';
import type { ServiceAccountName } from '../../../../src/credentials/credential.ts';
import { reveal, secret } from '../../../../src/telemetry/secret.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { execV1 } from '../support.ts';
import { createKubeClient } from '../../../../src/kube/api/client.ts';
import { KubeError } from '../../../../src/kube/api/errors.ts';
import { json, startKubeServer, type KubeAnswer } from '../../../support/kube-server.ts';
import { like } from '../../../support/like.ts';

const attributes: TokenAttributes = {
  serviceAccountTokenAudience: 'audience',
  cacheType: 'ServiceAccount',
  requireServiceAccount: true,
  requiredServiceAccountAnnotationKeys: ['a/required'],
  optionalServiceAccountAnnotationKeys: ['a/optional'],
};
const account = (name = 'account'): ServiceAccountName => ({ namespace: 'ns', name });

function world(
  change: Partial<TokenAttributes> = {},
  annotations: Record<string, string> = { 'a/required': 'r', 'a/other': 'o' },
) {
  const requests: ProviderRequest[] = [];
  const tokenRequests: unknown[] = [];
  const failures: PluginFailure[] = [];
  const clock = createFakeClock();
  let password = 'pass';
  let refusal: string | undefined;
  let renewals = 0;
  let given = annotations;
  const tokens: ServiceAccountTokens = {
    serviceAccount: (namespace, name) =>
      name === 'missing'
        ? Promise.reject(new Error('not found'))
        : Promise.resolve({ uid: `uid of ${namespace}/${name}`, annotations: given }),
    tokenFor: async ({ name }, uid, audience) => {
      tokenRequests.push([name, uid, audience]);
      if (refusal !== undefined) throw new Error(refusal);
      return secret(`token ${renewals} of ${name}`);
    },
  };
  const made = new Provider({
    config: {
      name: 'p',
      matchImages: ['r.example'],
      defaultCacheDuration: 60_000,
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
    renew: () => (renewals += 1),
    annotate: (changed: Record<string, string>) => (given = changed),
    echo: (text: string) => (password = text),
    provide: (who?: ServiceAccountName) => made.provide('r.example/a', who),
  };
}

t.test('a plugin gets the token and the configured annotations', async (t) => {
  const annotations = { 'a/required': 'r', 'a/optional': 'o', 'a/other': 'x' };
  const { provide, requests, tokenRequests } = world({}, annotations);
  like(t, await provide(account()), { auth: new Map([['r.example', { username: 'u' }]]) });
  t.strictSame(tokenRequests, [['account', 'uid of ns/account', 'audience']]);
  t.strictSame(requests[0]?.annotations, { 'a/required': 'r', 'a/optional': 'o' });
  t.equal(requests[0]?.token && reveal(requests[0].token), 'token 0 of account');
});

t.test('the plugin does not run without its service account', async (t) => {
  const missing = 'Failed to get service account data ns/account: required annotation a/required not found';
  const cases: [ServiceAccountName | undefined, string | RegExp][] = [
    [account(), missing],
    [account('missing'), 'Failed to get service account ns/missing: not found'],
    [undefined, /^it needs a token .* the request names no service account$/],
  ];
  for (const [who, reason] of cases) {
    const { provide, requests, made, failures } = world({}, {});
    like(t, await provide(who), { auth: new Map(), reason });
    t.equal(requests.length, 0);
    const failed = who?.name === 'missing' ? 1 : 0;
    t.equal(failures.length, failed, 'a refusal of the API server only');
    t.equal(made.lastFailure() === undefined, failed === 0);
  }
});

t.test('as in the kubelet, annotations have room in 64 KiB', async (t) => {
  const long = 'x'.repeat(70_000);
  const { provide, requests } = world({}, { 'a/required': 'r', 'a/optional': long });
  const reason = 'The annotations of ns/account are longer than 65535 bytes';
  like(t, await provide(account()), { auth: new Map(), reason });
  t.equal(requests.length, 0);
});

t.test(
  'a refused token request backs off its account, is reported once, and is cleared by a success',
  async (t) => {
    const { provide, made, tokenRequests, failures, clock, refuse } = world();
    refuse('forbidden by RBAC');
    for (let i = 0; i < 3; i += 1) {
      const reason = 'Error getting service account token ns/account: forbidden by RBAC';
      like(t, await provide(account()), { auth: new Map(), reason });
    }
    t.equal(tokenRequests.length, 1);
    like(t, failures, [{ image: 'r.example/a', error: { code: 'no-token' } }]);
    like(t, made.lastFailure(), { error: { message: /forbidden by RBAC/ } });
    like(t, await provide(account('other')), { reason: /ns\/other: forbidden by RBAC/ });
    t.equal(tokenRequests.length, 2, 'another account is not backed off');
    refuse(undefined);
    await clock.advance(10_000);
    t.equal((await provide(account())).auth.size, 1);
    t.equal((await provide(account('other'))).auth.size, 1);
    t.equal(made.lastFailure(), undefined);
  },
);

t.test('responses are cached by account, or by token', async (t) => {
  for (const [cacheType, runs] of [
    ['ServiceAccount', 1],
    ['Token', 2],
  ] as const) {
    const { provide, requests, renew, annotate } = world({ cacheType });
    await provide(account());
    await provide(account());
    renew();
    await provide(account());
    t.equal(requests.length, runs, cacheType);
    await provide(account('other'));
    t.equal(requests.length, runs + 1, 'another account');
    annotate({ 'a/required': 'changed' });
    await provide(account());
    t.equal(requests.length, runs + 2, 'other annotations');
  }
});

t.test('a token as the password is refused, unless the cache type is Token', async (t) => {
  const shared = world();
  shared.echo('token 0 of account');
  like(t, await shared.provide(account()), {
    auth: new Map(),
    reason:
      'Credential provider plugin returned the service account token as the password for image "r.example/a", ' +
      "which is not allowed when service account cache type is not set to 'Token'",
  });
  await shared.provide(account());
  t.equal(shared.requests.length, 2, 'not cached');
  const apart = world({ cacheType: 'Token' });
  apart.echo('token 0 of account');
  t.equal((await apart.provide(account())).auth.size, 1);
});

const path = '/api/v1/namespaces/team/serviceaccounts/builder';
const builder = { namespace: 'team', name: 'builder' };

async function start(t: Test) {
  const server = await startKubeServer();
  const client = createKubeClient({ access: server.access, userAgent: 'archwright/test', timeoutMs: 5000 });
  t.teardown(async () => {
    client.close();
    await server.close();
  });
  const clock = createFakeClock();
  return { server, clock, tokens: createServiceAccountTokens(client, clock) };
}

/** Tokens with a number that counts up. */
function issuing(): KubeAnswer {
  let count = 0;
  return (request, response) => {
    count += 1;
    json({ kind: 'TokenRequest', status: { token: `a.b-${count}.c_` } }, 201)(request, response);
  };
}

t.test('a token request has the minimum lifetime, the account and the audience, but no pod', async (t) => {
  const { server, tokens } = await start(t);
  server.script(`${path}/token`, issuing());
  const token = await tokens.tokenFor(builder, 'uid-1', 'reg.example');
  t.equal(reveal(token), 'a.b-1.c_');
  t.notMatch(JSON.stringify({ token }) + inspect(token), /a\.b-1/);
  t.equal(server.requests.length, 1);
  like(t, server.requests[0], { method: 'POST', authorization: 'Bearer of-the-test' });
  t.strictSame(JSON.parse(server.requests[0]?.body ?? ''), {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { uid: 'uid-1' },
    spec: { audiences: ['reg.example'], expirationSeconds: 600 },
  });
});

t.test('a token is used for 80 % of the lifetime that was requested', async (t) => {
  const { server, tokens, clock } = await start(t);
  server.script(`${path}/token`, issuing());
  const get = async (): Promise<string> => reveal(await tokens.tokenFor(builder, 'u', 'a'));
  t.strictSame(await Promise.all([get(), get()]), ['a.b-1.c_', 'a.b-1.c_'], 'one request');
  await clock.advance(479_999);
  t.equal(await get(), 'a.b-1.c_');
  await clock.advance(1);
  t.equal(await get(), 'a.b-2.c_');
});

t.test('each account, uid and audience has its own token', async (t) => {
  const { server, tokens } = await start(t);
  const issue = issuing();
  const accounts = [builder, { ...builder, namespace: 'other' }, { ...builder, name: 'other' }];
  for (const { namespace, name } of accounts) {
    server.script(`/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, issue);
  }
  const given = await Promise.all(
    accounts.flatMap((each) =>
      ['ua', 'va', 'ub'].map(([uid = '', audience = '']) => tokens.tokenFor(each, uid, audience)),
    ),
  );
  t.equal(new Set(given.map(reveal)).size, 9);
});

t.test('an account is cached for a minute', async (t) => {
  const { server, tokens, clock } = await start(t);
  server.script(path, json({ metadata: { uid: 'u', annotations: { a: 'b' } } }));
  for (const at of [0, 59_999]) {
    await clock.advance(at);
    t.strictSame(await tokens.serviceAccount('team', 'builder'), { uid: 'u', annotations: { a: 'b' } });
  }
  t.equal(server.requests.length, 1);
  await clock.advance(1);
  server.script(path, json({ metadata: { uid: 'v' } }));
  t.strictSame(await tokens.serviceAccount('team', 'builder'), { uid: 'v', annotations: {} });
});

t.test('a recreated account is read again', async (t) => {
  const { server, tokens } = await start(t);
  server.script(path, json({ metadata: { uid: 'u' } }), json({ metadata: { uid: 'v' } }));
  const conflict = json({ kind: 'Status', message: 'the UID does not match' }, 409);
  server.script(`${path}/token`, json({ kind: 'Status' }, 403), conflict, issuing());
  const { uid } = await tokens.serviceAccount('team', 'builder');
  await t.rejects(tokens.tokenFor(builder, uid, 'a'), { code: 'forbidden' });
  t.equal((await tokens.serviceAccount('team', 'builder')).uid, uid, 'a refusal is not about the account');
  await t.rejects(tokens.tokenFor(builder, uid, 'a'), { code: 'conflict' });
  t.equal((await tokens.serviceAccount('team', 'builder')).uid, 'v');
  t.equal(reveal(await tokens.tokenFor(builder, 'v', 'a')), 'a.b-1.c_');
});

t.test(
  'refusals and invalid tokens are errors that do not contain the token, and are not cached',
  async (t) => {
    const answers: [KubeAnswer, string][] = [
      [json({ kind: 'Status', message: 'User "x" cannot create' }, 403), 'forbidden'],
      [json({ kind: 'Status', message: 'not found' }, 404), 'not-found'],
      [json(null), 'bad-answer'],
      [json({ status: { token: '' } }), 'bad-answer'],
      [json({ status: { token: 'SECRET '.repeat(10) } }), 'bad-answer'],
      [json({ status: { token: 'SECRET'.repeat(10_000) } }), 'bad-answer'],
      [json({ status: { token: ['SECRET'] } }), 'bad-answer'],
    ];
    for (const [answer, code] of answers) {
      const { server, tokens } = await start(t);
      server.script(`${path}/token`, answer, issuing());
      const error: unknown = await tokens.tokenFor(builder, 'u', 'a').catch((thrown: unknown) => thrown);
      like(t, error, { code, where: `POST ${path}/token` });
      t.notMatch(error instanceof KubeError ? error.message : '', /SECRET/);
      t.equal(reveal(await tokens.tokenFor(builder, 'u', 'a')), 'a.b-1.c_');
    }
    for (const answer of [json(null), json({}), json({ metadata: { uid: '' } }), json({ metadata: {} })]) {
      const { server, tokens } = await start(t);
      server.script(path, answer);
      const error = { code: 'bad-answer', where: `GET ${path}` };
      await t.rejects(tokens.serviceAccount('team', 'builder'), error);
    }
  },
);
