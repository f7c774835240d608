import { once } from 'node:events';
import { connect } from 'node:tls';
import t from 'tap';
import { agentMetrics } from '../../daemon/api/outcomes.ts';
import { architectureOf } from '../../daemon/agent.ts';
import { until } from '../support/until.ts';
import { send as probe } from '../serving/support.ts';
import { bodyOf, clientTls, holding, startTestAgent } from './support.ts';
import { like } from '../support/like.ts';

const facts = bodyOf('r.example/a:1');

t.test('/v1/info describes the node', async (t) => {
  let fingerprint = 'one';
  const problem = { source: 'docker-config', origin: '/config.json', message: 'is not valid JSON' } as const;
  const { send } = await startTestAgent(t, {
    fingerprint: () => fingerprint,
    problems: () => Array.from({ length: 99 }, () => ({ ...problem, message: `${problem.message}\n` })),
  });
  t.strictSame((await send('GET', '/v1/info')).json, {
    nodeName: 'node-1',
    architecture: architectureOf(process.arch),
    version: '1.2.3',
    credentialFingerprint: 'one',
    node: { pullMode: 'local', amd64Level: 3 },
    credentialProblems: Array.from({ length: 10 }, () => ({ ...problem, message: 'is not valid JSON?' })),
    dockerHub: { limit: 100, remaining: 76 },
    execErrors: { state: 'on', errors: [] },
  });
  fingerprint = 'two';
  like(t, (await send('GET', '/v1/info')).json, { credentialFingerprint: 'two' });
});

t.test('the architecture is named as in node labels', (t) => {
  const cases = { x64: 'amd64', arm64: 'arm64', s390x: 's390x', ppc64: 'ppc64le' } as const;
  for (const [node, label] of Object.entries(cases))
    t.equal(architectureOf(node as keyof typeof cases), label);
  t.end();
});

t.test('invalid requests are refused', async (t) => {
  const { send, post, metric } = await startTestAgent(t, {
    limits: { maxBodyBytes: 1000, bodyTimeoutMs: 50 },
  });
  const json = { 'content-type': 'application/json' };
  const plain = { 'content-type': 'text/plain' };
  const cases: [string, Promise<Awaited<ReturnType<typeof send>>>, number, string][] = [
    ['unknown path', send('GET', '/'), 404, 'not-found'],
    ['metrics are elsewhere', send('GET', '/metrics'), 404, 'not-found'],
    ['method of facts', send('DELETE', '/v1/facts'), 405, 'method-not-allowed'],
    ['method of info', send('POST', '/v1/info', { headers: json, body: '{}' }), 405, 'method-not-allowed'],
    ['unknown method', send('PROPFIND', '/v1/facts'), 405, 'method-not-allowed'],
    ['no content type', send('POST', '/v1/facts', { body: '{}' }), 415, 'unsupported-media-type'],
    ['wrong content type', post(facts, { headers: plain }), 415, 'unsupported-media-type'],
    ['no JSON', post('{'), 400, 'bad-request'],
    ['no body', post(''), 400, 'bad-request'],
    ['not in the shape', post({}), 400, 'bad-request'],
    ['too large', post('x'.repeat(1001)), 413, 'too-large'],
  ];
  for (const [name, sent, status, code] of cases) {
    const answer = await sent;
    t.equal(answer.status, status, name);
    t.match(answer.headers['content-type'], /^application\/json/, name);
    like(t, answer.json, { error: { code, message: String } }, name);
  }
  const allowed = (await send('DELETE', '/v1/facts')).headers.allow;
  t.match(allowed, /GET/);
  t.match(allowed, /POST/);
  const wrong = (labels: string) => metric(`archwright_agent_requests_total{${labels},outcome="wrong"}`);
  t.ok((await wrong('method="POST",path="/v1/facts"')) > 3);
  t.ok((await wrong('method="other",path="/v1/facts"')) > 0);
  t.equal(await wrong('method="GET",path="other"'), 2);
});

t.test('a body that does not arrive ends in a timeout', async (t) => {
  const { agent, pki, metric } = await startTestAgent(t, { limits: { bodyTimeoutMs: 50 } });
  const socket = connect({
    port: Number(new URL(agent.url).port),
    host: '127.0.0.1',
    servername: 'archwright-agent',
    ca: pki.ca.cert,
    ...(await clientTls(pki.clientDir)),
  });
  t.teardown(() => socket.destroy());
  socket.write(
    'POST /v1/facts HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{',
  );
  const [received] = (await once(socket, 'data')) as [Buffer];
  t.match(received.toString(), /^HTTP\/1\.1 408 /);
  t.equal(await metric('archwright_agent_open_requests'), 0);
});

t.test('concurrent requests are limited', async (t) => {
  const { held, source } = holding();
  const { post, metric } = await startTestAgent(t, { limits: { openRequests: 1 }, source });
  const first = post(facts);
  await until(held.isHeld);
  const second = await post(facts);
  t.equal(second.status, 503);
  t.equal(second.headers['retry-after'], '1');
  like(t, second.json, { error: { code: 'overloaded' } });
  t.equal(await metric('archwright_agent_open_requests'), 1);
  held.release();
  t.equal((await first).status, 200);
  t.equal((await post(facts)).status, 200);
});

t.test('the bytes of all request bodies together are limited', async (t) => {
  const { held, source } = holding();
  const { post } = await startTestAgent(t, { limits: { maxBodiesBytes: 400_000 }, source });
  const large = `${JSON.stringify(facts)}${' '.repeat(299_000)}`;
  const first = post(large);
  await until(held.isHeld);
  const second = await post(large);
  t.equal(second.status, 503);
  like(t, second.json, { error: { code: 'overloaded' } });
  const small = post(facts);
  await until(() => held.lookups === 1);
  held.release();
  t.equal((await first).status, 200);
  t.equal((await small).status, 200);
  t.equal((await post(large)).status, 200);
});

t.test('health, readiness and metrics are on their own port', async (t) => {
  const { agent } = await startTestAgent(t);
  t.equal((await probe(`${agent.metricsUrl}/healthz`)).status, 200);
  t.equal((await probe(`${agent.metricsUrl}/readyz`)).status, 200);
  const { body } = await probe(`${agent.metricsUrl}/metrics`);
  for (const { name } of agentMetrics) t.match(body, new RegExp(`^# HELP ${name} `, 'm'));
  t.match(body, /archwright_agent_requests_total\{method="POST",path="\/v1\/facts",outcome="failed"\} 0/);
});

t.test('stop finishes the requests in flight', async (t) => {
  const { held, source } = holding();
  const { agent, post, send } = await startTestAgent(t, { source });
  const inFlight = post(facts);
  await until(held.isHeld);
  const stopped = agent.stop(10_000);
  t.equal(agent.stop(0), stopped, 'a second stop has no effect');
  like(t, await probe(`${agent.metricsUrl}/readyz`), { status: 503, body: /the agent is stopping/ });
  held.release();
  const answer = await inFlight;
  t.equal(answer.status, 200);
  t.equal(answer.headers.connection, 'close');
  await stopped;
  await t.rejects(send('GET', '/v1/info'), { code: 'ECONNREFUSED' });
  await t.rejects(probe(`${agent.metricsUrl}/healthz`), { code: 'ECONNREFUSED' });
});

t.test('invalid options fail the start', async (t) => {
  const { agent } = await startTestAgent(t);
  const missing = { name: 'ServingError', message: /tls\.crt/ };
  await t.rejects(startTestAgent(t, { tlsDir: '/nonexistent' }), missing);
  await t.rejects(startTestAgent(t, { listen: 'nonsense' }), { message: /not an address to listen on/ });
  const taken = new URL(agent.metricsUrl).host;
  await t.rejects(startTestAgent(t, { metricsListen: taken }), { message: /^cannot listen on/ });
});
