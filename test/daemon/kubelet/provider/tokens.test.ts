/** Tokens from an API server on a socket. */
import { inspect } from 'node:util';
import t, { type Test } from 'tap';
import { createServiceAccountTokens } from '../../../../daemon/kubelet/provider/service-account.ts';
import { createKubeClient } from '../../../../src/kube/api/client.ts';
import { KubeError } from '../../../../src/kube/api/errors.ts';
import { reveal } from '../../../../src/telemetry/secret.ts';
import { json, startKubeServer, type KubeAnswer } from '../../../support/kube-server.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';

const account = '/api/v1/namespaces/team/serviceaccounts/builder';
const pod = { namespace: 'team', serviceAccountName: 'builder' };

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
function issuing(spec: object = { expirationSeconds: 600 }): KubeAnswer {
  let count = 0;
  return (request, response) => {
    count += 1;
    json({ kind: 'TokenRequest', spec, status: { token: `a.b-${count}.c_` } }, 201)(request, response);
  };
}

t.test('a token request has the shortest life, the account and the audience, and no pod', async (t) => {
  const { server, tokens } = await start(t);
  server.script(`${account}/token`, issuing());
  const token = await tokens.tokenFor({ ...pod, name: 'p', uid: 'u' }, 'uid-1', 'reg.example');
  t.equal(reveal(token), 'a.b-1.c_');
  t.notMatch(JSON.stringify({ token }) + inspect(token), /a\.b-1/);
  t.equal(server.requests.length, 1);
  t.match(server.requests[0], { method: 'POST', authorization: 'Bearer of-the-test' });
  t.same(JSON.parse(server.requests[0]?.body ?? ''), {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { uid: 'uid-1' },
    spec: { audiences: ['reg.example'], expirationSeconds: 600 },
  });
});

t.test('a token is used for 80 % of the life that the server gave it', async (t) => {
  const cases: [spec: object, keptMs: number][] = [
    [{ expirationSeconds: 600 }, 480_000],
    [{ expirationSeconds: 3600 }, 2_880_000],
    [{ expirationSeconds: 1e9 }, 69_120_000],
    [{}, 480_000],
    [{ expirationSeconds: '3600' }, 480_000],
    [{ expirationSeconds: -1 }, 480_000],
  ];
  for (const [spec, keptMs] of cases) {
    const { server, tokens, clock } = await start(t);
    server.script(`${account}/token`, issuing(spec));
    const get = async (): Promise<string> => reveal(await tokens.tokenFor(pod, 'u', 'a'));
    t.same(await Promise.all([get(), get()]), ['a.b-1.c_', 'a.b-1.c_'], 'one request');
    await clock.advance(keptMs - 1);
    t.equal(await get(), 'a.b-1.c_', JSON.stringify(spec));
    await clock.advance(1);
    t.equal(await get(), 'a.b-2.c_', JSON.stringify(spec));
  }
});

t.test('each account, uid and audience has its own token', async (t) => {
  const { server, tokens } = await start(t);
  const issue = issuing();
  const pods = [pod, { ...pod, namespace: 'other' }, { ...pod, serviceAccountName: 'other' }];
  for (const { namespace, serviceAccountName: name } of pods) {
    server.script(`/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, issue);
  }
  const given = await Promise.all(
    pods.flatMap((each) =>
      [
        ['u', 'a'],
        ['v', 'a'],
        ['u', 'b'],
      ].map(async ([uid = '', audience = '']) => reveal(await tokens.tokenFor(each, uid, audience))),
    ),
  );
  t.equal(new Set(given).size, 9);
});

t.test('an account is cached for a minute, and its annotations are strings', async (t) => {
  const { server, tokens, clock } = await start(t);
  server.script(account, json({ metadata: { uid: 'u', annotations: { a: 'b', c: 1, d: null } } }));
  for (const at of [0, 59_999]) {
    await clock.advance(at);
    t.same(await tokens.serviceAccount('team', 'builder'), { uid: 'u', annotations: { a: 'b' } });
  }
  t.equal(server.requests.length, 1);
  await clock.advance(1);
  server.script(account, json({ metadata: { uid: 'v' } }));
  t.same(await tokens.serviceAccount('team', 'builder'), { uid: 'v', annotations: {} });
});

t.test('a recreated account is read again', async (t) => {
  const { server, tokens } = await start(t);
  server.script(account, json({ metadata: { uid: 'u' } }), json({ metadata: { uid: 'v' } }));
  server.script(
    `${account}/token`,
    json({ kind: 'Status', message: 'the UID does not match' }, 409),
    issuing(),
  );
  const { uid } = await tokens.serviceAccount('team', 'builder');
  await t.rejects(tokens.tokenFor(pod, uid, 'a'), { code: 'conflict', message: /the UID does not match/ });
  t.equal((await tokens.serviceAccount('team', 'builder')).uid, 'v');
  t.equal(reveal(await tokens.tokenFor(pod, 'v', 'a')), 'a.b-1.c_');
});

t.test('refusals and invalid tokens are errors without the token, and not cached', async (t) => {
  const answers: [KubeAnswer, string][] = [
    [
      json({ kind: 'Status', message: 'User "x" cannot create resource "serviceaccounts/token"' }, 403),
      'forbidden',
    ],
    [json({ kind: 'Status', message: 'not found' }, 404), 'not-found'],
    [json(null), 'bad-answer'],
    [json({ status: {} }), 'bad-answer'],
    [json({ status: { token: '' } }), 'bad-answer'],
    [json({ status: { token: 'two\nlines' } }), 'bad-answer'],
    [json({ status: { token: 'SECRET '.repeat(10) } }), 'bad-answer'],
    [json({ status: { token: 'SECRET'.repeat(10_000) } }), 'bad-answer'],
    [json({ status: { token: ['SECRET'] } }), 'bad-answer'],
  ];
  for (const [answer, code] of answers) {
    const { server, tokens } = await start(t);
    server.script(`${account}/token`, answer, issuing());
    const error: unknown = await tokens.tokenFor(pod, 'u', 'a').catch((thrown: unknown) => thrown);
    t.match(error, { code, where: `POST ${account}/token` });
    t.notMatch(error instanceof KubeError ? error.message : '', /SECRET/);
    t.equal(reveal(await tokens.tokenFor(pod, 'u', 'a')), 'a.b-1.c_');
  }
  for (const answer of [json(null), json({}), json({ metadata: { uid: '' } }), json({ metadata: {} })]) {
    const { server, tokens } = await start(t);
    server.script(account, answer);
    await t.rejects(tokens.serviceAccount('team', 'builder'), {
      code: 'bad-answer',
      where: `GET ${account}`,
    });
  }
});

t.test('names do not lead out of their path', async (t) => {
  const { server, tokens } = await start(t);
  await t.rejects(tokens.serviceAccount('../..', '../nodes'), { code: 'not-found' });
  t.equal(server.requests[0]?.path, '/api/v1/namespaces/..%2F../serviceaccounts/..%2Fnodes');
});
