import { connect } from 'node:tls';
import t, { type Test } from 'tap';
import { systemClock } from '../../src/async/clock.ts';
import type { PodFactsRequest } from '../../src/cluster/facts-of-pod.ts';
import { createCallers, Refused } from '../../src/facts-api/callers.ts';
import { startFactsServer } from '../../src/facts-api/server.ts';
import { factsAudience, maxBodyBytes } from '../../src/facts-api/request.ts';
import { failedFacts } from '../../src/images/facts/facts.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { scrub } from '../../src/telemetry/scrub.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { factsOf } from '../support/facts.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { connectedStore } from '../kube/support.ts';
import { send } from '../serving/support.ts';
import { readableLog } from '../support/captured.ts';
import { like } from '../support/like.ts';

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

async function server(t: Test, hold: () => Promise<unknown> = () => Promise.resolve(), clock = systemClock) {
  const { store, client } = await connectedStore(t);
  const requests: PodFactsRequest[] = [];
  const { log, lines } = readableLog();
  const metrics = createMetrics();
  const running = await startFactsServer({
    listen: '127.0.0.1:0',
    client,
    factsOfPod: async (of) => {
      requests.push(of);
      await hold();
      const error = { code: 'timeout', message: refusal } as const;
      const failed = (image: string) => failedFacts(image, error, Date.now(), { endpoint: '10.0.0.7:5000' });
      return new Map(
        of.uses.map(({ image }) => [image, image.includes('closed') ? failed(image) : factsOf(image)]),
      );
    },
    clock,
    log,
    metrics,
  });
  t.teardown(() => running.drain(0));
  const post = (body: unknown, path = '/v1/facts', method = 'POST', signal?: AbortSignal) =>
    send(`${running.url}${path}`, {
      method,
      signal,
      rejectUnauthorized: false,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const issue = (user: string): string => store.callers.issue(user, [factsAudience]);
  return { store, running, requests, lines, post, metrics, issue };
}

const messageIn = (text: string): string => (JSON.parse(text) as { message: string }).message;

t.test('a caller with a token of the namespace gets the facts that the controller finds', async (t) => {
  const { store, requests, post, issue } = await server(t);
  const token = issue(web);
  const { status, body } = await post(request({ token }));
  t.equal(status, 200);
  like(t, JSON.parse(body), { facts: [{ image: 'private.example.com/app:1' }] });
  like(t, requests, [
    {
      namespace: 'shop',
      uses: [{ image: 'private.example.com/app:1', pullPolicy: 'IfNotPresent' }],
      pullSecrets: { names: ['regcred'] },
      serviceAccount: { namespace: 'shop', name: 'web' },
      budgetMs: 5000,
    },
  ]);
  await post(request({ token, pullSecrets: [] }));
  like(t, requests[1]?.pullSecrets, { names: [], serviceAccount: 'web' });
  for (const maxAgeMs of [5000, 0]) await post(request({ token, maxAgeMs }));
  t.strictSame(
    requests.map(({ maxAgeMs }) => maxAgeMs),
    [undefined, undefined, 5000, 5000],
  );
  const reviews = store.received(/tokenreviews$/);
  t.equal(reviews.length, 1, 'one TokenReview for both requests');
  like(t, reviews[0]?.json, { spec: { audiences: [factsAudience] } });
});

t.test('callers without a valid token get no facts', async (t) => {
  const { store, requests, post, lines, metrics, issue } = await server(t);
  const forged = (aud: unknown): string =>
    `e30.${Buffer.from(JSON.stringify({ aud, sub: web })).toString('base64url')}.c2ln`;
  const revoked = issue(web);
  store.callers.revoke(revoked);
  store.callers.grant('system:admin', 'create', 'arch.example/imagefacts', 'shop');
  const bearer = store.callers.issue(web, ['https://kubernetes.default.svc']);
  const rows: [about: string, token: string, reviewed: boolean][] = [
    ['no token at all', 'none', false],
    ["a person's or pod's token for the API server", bearer, false],
    ['a forged token', forged(factsAudience), true],
    ['a forged token among other audiences', forged(['x', factsAudience]), true],
    ['a forged token without audience', forged(undefined), false],
    ['a revoked token', revoked, true],
    ['a token that is not JSON', `e30.${Buffer.from('{').toString('base64url')}.c2ln`, false],
    ['a user that is no service account', issue('system:admin'), true],
    ['a token of another namespace', issue('system:serviceaccount:bank:web'), true],
    ['a namespace with a common prefix', issue('system:serviceaccount:shop-2:web'), true],
  ];
  for (const [about, token, reviewed] of rows) {
    const before = store.received(/tokenreviews$/).length;
    const { status, body } = await post(request({ token }));
    t.equal(status, 403, about);
    t.notMatch(body, /private\.example\.com/, about);
    t.equal(store.received(/tokenreviews$/).length - before, reviewed ? 1 : 0, `${about}: reviewed`);
  }
  t.strictSame(requests, [], 'no lookup');
  t.notMatch(lines(), revoked, 'no token is logged');
  t.match(await metrics.render(), /archwright_controller_facts_requests_total\{outcome="refused"\} 10/);
});

t.test('a token for the API server is refused if its authenticator knows no audiences', async (t) => {
  for (const [audiences, isValid] of [
    [undefined, false],
    [[factsAudience], true],
  ] as const) {
    const status = { authenticated: true, user: { username: web }, audiences };
    const create = () => Promise.resolve({ status });
    const check = createCallers({ client: { create } as unknown as KubeClient, clock: systemClock });
    const checked = check(secret('token-of-the-test'), 'shop', '10.0.0.7', neverAborted);
    await (isValid ? t.resolves(checked) : t.rejects(checked, Refused));
  }
});

t.test('a token that was requested for a pod ends at most 30 s after the pod', async (t) => {
  const clock = createFakeClock();
  const { store, post, issue } = await server(t, undefined, clock);
  const token = issue(web);
  t.equal((await post(request({ token }))).status, 200);
  // The API server accepts no token of a deleted pod.
  store.callers.revoke(token);
  await clock.advance(29_999);
  t.equal((await post(request({ token }))).status, 200, 'the review is kept');
  await clock.advance(1);
  t.equal((await post(request({ token }))).status, 403);
});

t.test('a stranger cannot choose a text that the log hides', async (t) => {
  const { post } = await server(t);
  const { status } = await post(request({ token: 'registry.example.com' }));
  t.equal(status, 403);
  t.equal(scrub('from registry.example.com'), 'from registry.example.com');
});

t.test('facts for another namespace need the permission to create imagefacts there', async (t) => {
  const { store, post, issue } = await server(t);
  const reporter = 'system:serviceaccount:archwright:reporter';
  const token = issue(reporter);
  const refused = await post(request({ token }));
  t.equal(refused.status, 403);
  t.match(messageIn(refused.body), /reporter has no right to create imagefacts\.arch\.example in shop/);
  store.callers.grant(reporter, 'create', 'arch.example/imagefacts', 'shop');
  t.equal((await post(request({ token }))).status, 200, 'a refusal is not cached');
  t.equal((await post(request({ token, namespace: 'bank' }))).status, 403);
  const [review] = store.received(/subjectaccessreviews$/);
  like(t, review?.json, {
    spec: { user: reporter, groups: ['system:serviceaccounts', 'system:authenticated'] },
  });
});

t.test('a failed lookup tells a caller no more than a pod would', async (t) => {
  const { store, post, issue } = await server(t);
  const images = [{ image: 'registry.example.com/closed:1', pullPolicy: 'Always' }];
  const { body } = await post(request({ token: issue(web), images }));
  like(t, JSON.parse(body), { facts: [{ endpoint: '', error: { code: 'unavailable' } }] });
  t.notMatch(body, /10\.0\.0\.7|ECONNREFUSED|timeout/);
  const trusted = 'system:serviceaccount:archwright:reporter';
  store.callers.grant(trusted, 'create', 'arch.example/imagefacts', 'shop');
  const all = await post(request({ token: issue(trusted), images }));
  like(t, JSON.parse(all.body), { facts: [{ error: { code: 'timeout', message: refusal } }] });
});

t.test('invalid requests are refused', async (t) => {
  const { post, requests, issue } = await server(t);
  const token = issue(web);
  const image = { image: 'a', pullPolicy: 'Always' };
  const times = (length: number, value: unknown) => Array.from({ length }, () => value);
  const rows: [body: unknown, status: number, message: RegExp][] = [
    ['{', 400, /not JSON/],
    [[], 400, /not a JSON object/],
    [request({ token: 1 }), 400, /^archwright: token must be a string$/],
    [request({ token: 'x'.repeat(9000) }), 400, /token must have a length of <=8192/],
    [request({ token, more: 1 }), 400, /more is not a known field/],
    [request({ token, namespace: '../bank' }), 400, /namespace must be a name of a namespace/],
    [request({ token, serviceAccount: 'A' }), 400, /serviceAccount must be a name of a service account/],
    [request({ token, images: times(257, image) }), 400, /images must have a length of <=256/],
    [
      request({ token, images: [{ ...image, pullPolicy: 'x' }] }),
      400,
      /images\.0\.pullPolicy must be one of "Always"/,
    ],
    [request({ token, pullSecrets: times(21, 'a') }), 400, /pullSecrets must have a length of <=20/],
    [request({ token, deadlineMs: -1 }), 400, /deadlineMs must be >0/],
    [request({ token, maxAgeMs: '5s' }), 400, /maxAgeMs must be a number/],
    ['x'.repeat(maxBodyBytes + 1), 413, /larger than/],
  ];
  for (const [body, status, message] of rows) {
    const answer = await post(body);
    t.equal(answer.status, status, String(message));
    like(t, messageIn(answer.body), message);
  }
  t.equal((await post('', '/metrics', 'GET')).status, 404);
  t.equal((await post(request({ token }), '/v1/facts', 'PUT')).status, 404);
  t.strictSame(requests, []);
  t.equal((await post(request({ token, deadlineMs: 1e9 }))).status, 200);
  t.equal(requests[0]?.budgetMs, 60_000);
});

t.test('a busy namespace does not delay others, and gets 429 beyond its limit', async (t) => {
  const held: (() => void)[] = [];
  const hold = () => new Promise<void>((resolve) => held.push(resolve));
  const { store, post, requests, issue } = await server(t, hold);
  const token = issue(web);
  const busy = Array.from({ length: 100 }, () => post(request({ token })));
  await store.until(() => requests.length >= 16, 'lookups of the busy namespace');
  const first = await Promise.race(busy);
  t.equal(first.status, 429);
  const other = issue('system:serviceaccount:bank:default');
  const answer = post(request({ token: other, namespace: 'bank' }));
  await store.until(() => requests.some(({ namespace }) => namespace === 'bank'), 'the other namespace');
  const release = setInterval(() => held.splice(0).forEach((go) => go()), 1);
  t.equal((await answer).status, 200);
  const codes = (await Promise.all(busy)).map(({ status }) => status);
  clearInterval(release);
  t.strictSame(new Set(codes), new Set([200, 429]));
});

t.test('the images of a namespace count, not its requests', async (t) => {
  const clock = createFakeClock();
  const { store, post, requests, issue } = await server(t, undefined, clock);
  const images = Array.from({ length: 256 }, (_, index) => ({ image: `app:${index}`, pullPolicy: 'Always' }));
  const [token, other] = [issue(web), issue('system:serviceaccount:bank:default')];
  const answers = [1, 2, 3].map(() => post(request({ token, images })));
  await Promise.race(answers);
  t.equal((await post(request({ token: other, namespace: 'bank' }))).status, 200);
  await store.until(() => clock.pending > 0, 'the third request waits');
  t.equal(requests.filter(({ namespace }) => namespace === 'shop').length, 2, '600 images at once');
  await clock.advance(1000);
  t.equal(requests.length, 3);
  await clock.advance(200);
  t.strictSame(
    (await Promise.all(answers)).map(({ status }) => status),
    [200, 200, 200],
  );
});

t.test('a caller that leaves while its request waits is no error', async (t) => {
  const clock = createFakeClock();
  const { store, post, requests, lines, metrics, issue } = await server(t, undefined, clock);
  const images = Array.from({ length: 256 }, (_, index) => ({ image: `app:${index}`, pullPolicy: 'Always' }));
  const body = request({ token: issue(web), images });
  for (const _ of [1, 2]) await post(body);
  const leaving = new AbortController();
  const left = post(body, '/v1/facts', 'POST', leaving.signal);
  await store.until(() => clock.pending > 0, 'the request waits');
  leaving.abort();
  await t.rejects(left);
  await store.until(async () => /outcome="failed"\} 1/.test(await metrics.render()), 'it ends');
  t.equal(requests.length, 2);
  t.notMatch(lines(), /unexpectedly|could not be checked/);
});

t.test('if the API server does not respond, the request fails', async (t) => {
  const { store, post, requests, lines, issue } = await server(t);
  store.fault(/tokenreviews$/, { status: 500 });
  t.equal((await post(request({ token: issue(web) }))).status, 503);
  t.strictSame(requests, []);
  t.match(lines(), /could not be checked/);
});

t.test('it serves TLS with its own certificate', async (t) => {
  const { running } = await server(t);
  const socket = connect({ port: running.port, host: '127.0.0.1', rejectUnauthorized: false });
  await new Promise<void>((resolve) => socket.once('secureConnect', () => resolve()));
  t.equal(socket.getPeerCertificate().subject.CN, 'archwright-controller');
  socket.destroy();
});
