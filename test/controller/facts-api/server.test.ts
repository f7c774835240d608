import { connect } from 'node:tls';
import t, { type Test } from 'tap';
import { systemClock } from '../../../src/async/clock.ts';
import type { FactsWanted } from '../../../src/cluster/facts-of-pod.ts';
import { startFactsServer } from '../../../src/controller/facts-api/server.ts';
import { factsAudience, maxBodyBytes } from '../../../src/controller/facts-api/request.ts';
import { failedFacts } from '../../../src/images/facts/facts.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { factsOf, readableLog } from '../../fleet/support.ts';
import { connectedStore } from '../../kube/support.ts';
import { send } from '../../serving/support.ts';

const web = 'system:serviceaccount:shop:web';

const request = (more: object = {}): Record<string, unknown> => ({
  namespace: 'shop',
  images: [{ image: 'private.example.com/app:1', pullPolicy: 'IfNotPresent' }],
  pullSecrets: ['regcred'],
  serviceAccount: 'web',
  deadlineMs: 5000,
  ...more,
});

const refusal = 'connect ECONNREFUSED 10.0.0.7:5000';

async function server(t: Test, hold: () => Promise<unknown> = () => Promise.resolve()) {
  const { store, client } = await connectedStore(t);
  const wanted: FactsWanted[] = [];
  const { log, lines } = readableLog();
  const metrics = createMetrics();
  const running = await startFactsServer({
    listen: '127.0.0.1:0',
    client,
    factsOfPod: async (of) => {
      wanted.push(of);
      await hold();
      const error = { code: 'timeout', message: refusal } as const;
      const failed = (image: string) => failedFacts(image, error, Date.now(), { endpoint: '10.0.0.7:5000' });
      return new Map(
        of.uses.map(({ image }) => [image, image.includes('closed') ? failed(image) : factsOf(image)]),
      );
    },
    clock: systemClock,
    log,
    metrics,
  });
  t.teardown(() => running.drain(0));
  const post = (body: unknown, path = '/v1/facts', method = 'POST') =>
    send(`${running.url}${path}`, {
      method,
      rejectUnauthorized: false,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  return { store, running, wanted, lines, post, metrics };
}

const messageIn = (text: string): string => (JSON.parse(text) as { message: string }).message;

t.test('a caller with a token of the namespace gets the facts, as the controller finds them', async (t) => {
  const { store, wanted, post } = await server(t);
  const token = store.callers.issue(web, [factsAudience]);
  const { status, body } = await post(request({ token }));
  t.equal(status, 200);
  t.match(JSON.parse(body), { facts: [{ image: 'private.example.com/app:1' }] });
  t.match(wanted, [
    {
      namespace: 'shop',
      uses: [{ image: 'private.example.com/app:1', pullPolicy: 'IfNotPresent' }],
      pullSecrets: { names: ['regcred'] },
      serviceAccount: { namespace: 'shop', name: 'web' },
      budgetMs: 5000,
    },
  ]);
  await post(request({ token, pullSecrets: [] }));
  t.match(wanted[1]?.pullSecrets, { names: [], serviceAccount: 'web' });
  const asked = store.asked(/tokenreviews$/);
  t.equal(asked.length, 1, 'one review for both');
  t.match(asked[0]?.json, { spec: { audiences: [factsAudience] } });
});

t.test('strangers learn nothing', async (t) => {
  const { store, wanted, post, lines, metrics } = await server(t);
  const forged = (aud: unknown): string =>
    `e30.${Buffer.from(JSON.stringify({ aud, sub: web })).toString('base64url')}.c2ln`;
  const revoked = store.callers.issue(web, [factsAudience]);
  store.callers.revoke(revoked);
  const bearer = store.callers.issue(web, ['https://kubernetes.default.svc']);
  const rows: [about: string, token: string, reviewed: boolean][] = [
    ['no token at all', 'none', false],
    ["a person's or pod's token for the API server", bearer, false],
    ['a forged token', forged(factsAudience), true],
    ['a forged token among other audiences', forged(['x', factsAudience]), true],
    ['a forged token without audience', forged(undefined), false],
    ['a revoked token', revoked, true],
    ['a token that is not JSON', `e30.${Buffer.from('{').toString('base64url')}.c2ln`, false],
    ['a user that is no service account', store.callers.issue('system:admin', [factsAudience]), true],
    [
      'a token of another namespace',
      store.callers.issue('system:serviceaccount:bank:web', [factsAudience]),
      true,
    ],
    [
      'a namespace that begins alike',
      store.callers.issue('system:serviceaccount:shop-2:web', [factsAudience]),
      true,
    ],
  ];
  for (const [about, token, reviewed] of rows) {
    const before = store.asked(/tokenreviews$/).length;
    const { status, body } = await post(request({ token }));
    t.equal(status, 403, about);
    t.notMatch(body, /private\.example\.com/, about);
    t.equal(store.asked(/tokenreviews$/).length - before, reviewed ? 1 : 0, `${about}: reviewed`);
  }
  t.same(wanted, [], 'nothing was looked up');
  t.notMatch(lines(), revoked, 'no token is logged');
  t.match(await metrics.render(), /archwright_controller_facts_requests_total\{outcome="refused"\} 10/);
});

t.test('another namespace needs the right to create imagefacts there', async (t) => {
  const { store, post } = await server(t);
  const reporter = 'system:serviceaccount:archwright:reporter';
  const token = store.callers.issue(reporter, [factsAudience]);
  const refused = await post(request({ token }));
  t.equal(refused.status, 403);
  t.match(messageIn(refused.body), /reporter has no right to create imagefacts\.arch\.example in shop/);
  store.callers.grant(reporter, 'create', 'arch.example/imagefacts', 'shop');
  t.equal((await post(request({ token }))).status, 200, 'a refusal is not kept');
  t.equal((await post(request({ token, namespace: 'bank' }))).status, 403);
  const [review] = store.asked(/subjectaccessreviews$/);
  t.match(review?.json, {
    spec: { user: reporter, groups: ['system:serviceaccounts', 'system:authenticated'] },
  });
});

t.test('who may create pods learns no more of a failed lookup than from a pod', async (t) => {
  const { store, post } = await server(t);
  const images = [{ image: 'registry.example.com/closed:1', pullPolicy: 'Always' }];
  const own = store.callers.issue(web, [factsAudience]);
  const { body } = await post(request({ token: own, images }));
  t.match(JSON.parse(body), { facts: [{ endpoint: '', error: { code: 'unavailable' } }] });
  t.notMatch(body, /10\.0\.0\.7|ECONNREFUSED|timeout/);
  const trusted = 'system:serviceaccount:archwright:reporter';
  store.callers.grant(trusted, 'create', 'arch.example/imagefacts', 'shop');
  const all = await post(request({ token: store.callers.issue(trusted, [factsAudience]), images }));
  t.match(JSON.parse(all.body), { facts: [{ error: { code: 'timeout', message: refusal } }] });
});

t.test('requests that cannot be used', async (t) => {
  const { store, post, wanted } = await server(t);
  const token = store.callers.issue(web, [factsAudience]);
  const image = { image: 'a', pullPolicy: 'Always' };
  const rows: [body: unknown, status: number, message: RegExp][] = [
    ['{', 400, /not JSON/],
    [[], 400, /not a JSON object/],
    [request({ token: 1 }), 400, /^archwright: token is not a string/],
    [request({ token: 'x'.repeat(9000) }), 400, /token is not a string/],
    [request({ token, more: 1 }), 400, /a field besides/],
    [request({ token, namespace: '../bank' }), 400, /namespace is not a valid namespace name/],
    [request({ token, serviceAccount: 'A' }), 400, /serviceAccount is not a valid service account name/],
    [
      request({ token, images: Array.from({ length: 257 }, () => image) }),
      400,
      /images is not a list of at most 256/,
    ],
    [request({ token, images: [{ ...image, pullPolicy: 'x' }] }), 400, /pullPolicy is unknown/],
    [
      request({ token, pullSecrets: Array.from({ length: 21 }, () => 'a') }),
      400,
      /pullSecrets is not a list/,
    ],
    [request({ token, deadlineMs: -1 }), 400, /deadlineMs is not a positive number/],
    ['x'.repeat(maxBodyBytes + 1), 413, /larger than/],
  ];
  for (const [body, status, message] of rows) {
    const answer = await post(body);
    t.equal(answer.status, status, String(message));
    t.match(messageIn(answer.body), message);
  }
  t.equal((await post('', '/metrics', 'GET')).status, 404);
  t.equal((await post(request({ token }), '/v1/facts', 'PUT')).status, 404);
  t.same(wanted, []);
  t.equal((await post(request({ token, deadlineMs: 1e9 }))).status, 200);
  t.equal(wanted[0]?.budgetMs, 60_000);
});

t.test('one busy namespace keeps no other waiting, and gets 429 for too much', async (t) => {
  const held: (() => void)[] = [];
  const { store, post, wanted } = await server(t, () => new Promise<void>((resolve) => held.push(resolve)));
  const token = store.callers.issue(web, [factsAudience]);
  const busy = Array.from({ length: 100 }, () => post(request({ token })));
  await store.until(() => wanted.length >= 16, 'lookups of the busy namespace');
  const first = await Promise.race(busy);
  t.equal(first.status, 429);
  const other = store.callers.issue('system:serviceaccount:bank:default', [factsAudience]);
  const answer = post(request({ token: other, namespace: 'bank' }));
  await store.until(() => wanted.some(({ namespace }) => namespace === 'bank'), 'the other namespace');
  const release = setInterval(() => held.splice(0).forEach((go) => go()), 1);
  t.equal((await answer).status, 200);
  const codes = (await Promise.all(busy)).map(({ status }) => status);
  clearInterval(release);
  t.same(
    [...new Set(codes)].sort((a, b) => a - b),
    [200, 429],
  );
});

t.test('an API server that does not answer is a failure, not an answer', async (t) => {
  const { store, post, wanted, lines } = await server(t);
  store.fault(/tokenreviews$/, { status: 500 });
  const token = store.callers.issue(web, [factsAudience]);
  t.equal((await post(request({ token }))).status, 503);
  t.same(wanted, []);
  t.match(lines(), /could not be checked/);
});

t.test('it speaks TLS with a certificate of its own', async (t) => {
  const { running } = await server(t);
  const socket = connect({ port: running.port, host: '127.0.0.1', rejectUnauthorized: false });
  await new Promise<void>((resolve) => socket.once('secureConnect', () => resolve()));
  t.equal(socket.getPeerCertificate().subject.CN, 'archwright-controller');
  socket.destroy();
});
