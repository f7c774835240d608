import { createFakeClock } from '../../support/fake-clock.ts';
import { Agent } from 'node:https';
import { Socket } from 'node:net';
import t from 'tap';
import { roleProblem } from '../../../daemon/api/api.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { createCa } from '../../support/certificates.ts';
import { connect as connectFleet, createPki } from '../../fleet/support.ts';
import { startTestAgent } from '../support.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { like } from '../../support/like.ts';

t.test('webhook and controller get responses', async (t) => {
  const { pki, send } = await startTestAgent(t);
  for (const cn of ['archwright-webhook', 'archwright-controller']) {
    const tlsDir = await pki.dir({ cn, client: true });
    t.equal((await send('GET', '/v1/info', { tlsDir })).status, 200, cn);
    const both = await pki.dir({ cn, client: true, server: true, organizations: ['archwright'] });
    t.equal((await send('GET', '/v1/info', { tlsDir: both })).status, 200, `${cn} for both usages`);
  }
});

t.test('other roles of the same CA get 403, and the connection is closed', async (t) => {
  const { pki, send, lines, metric } = await startTestAgent(t);
  const roles = [
    'archwright-agent',
    'archwright-webhook2',
    'ARCHWRIGHT-WEBHOOK',
    ' archwright-webhook',
    'archwright-webhook\0',
    'webhook',
    'toString',
    '__proto__',
    'kubelet',
  ];
  for (const cn of roles) {
    const tlsDir = await pki.dir({ cn, client: true, dns: ['archwright-webhook'] });
    for (const request of ['GET /v1/info', 'GET /v1/facts', 'POST /v1/facts', 'GET /other']) {
      const [method = '', path = ''] = request.split(' ');
      const answer = await send(method, path, { tlsDir });
      t.equal(answer.status, 403, `${cn} ${request}`);
      t.equal(answer.headers.connection, 'close');
      like(t, answer.json, { error: { code: 'forbidden', message: /has no role/ } });
    }
  }
  const agent = new Agent({ keepAlive: true });
  t.teardown(() => agent.destroy());
  const tlsDir = await pki.dir({ cn: 'kubelet', client: true });
  const kept = await send('GET', '/v1/info', { agent, tlsDir });
  t.equal(kept.headers.connection, 'close', 'although the client asks for keep-alive');
  t.match(lines(), /a client was refused/);
  const refused = 'archwright_agent_requests_total{method="GET",path="/v1/facts",outcome="refused"}';
  t.equal(await metric(refused), roles.length);
});

t.test('TLS requires a client certificate of this cluster', async (t) => {
  const { pki, send, metric } = await startTestAgent(t);
  const foreign = await createCa('archwright test CA');
  const webhook = { cn: 'archwright-webhook', client: true };
  const dirs: [string, string][] = [
    ['none', '/nonexistent'],
    ['of another authority with the same name', await pki.dir(webhook, { issuer: foreign })],
    ['expired', await pki.dir({ ...webhook, notAfter: new Date(Date.now() - 1000) })],
    ['not valid yet', await pki.dir({ ...webhook, notBefore: new Date(Date.now() + 60_000) })],
    ['for servers only', await pki.dir({ cn: 'archwright-webhook', server: true, client: false })],
  ];
  for (const [name, tlsDir] of dirs) {
    await t.rejects(send('GET', '/v1/info', { tlsDir }), { code: /ECONNRESET|ERR_SSL|EPROTO|EPIPE/ }, name);
  }
  const answered = 'archwright_agent_requests_total{method="GET",path="/v1/info",outcome="answered"}';
  t.equal(await metric(answered), 0);
});

t.test('a certificate that expires on an open connection is refused', async (t) => {
  const pki = await createPki(t);
  const clock = createFakeClock();
  let offset = 0;
  const { agent, lines } = await startTestAgent(t, {
    pki,
    clock: { ...clock, monotonic: () => clock.monotonic(), now: () => Date.now() + offset },
  });
  const connection = await connectFleet(t, pki);
  const call = { signal: neverAborted, maxBytes: 1000 };
  await connection.json(agent.url, '/v1/info', call);
  const refused = { code: 'failed', message: /expired or not valid yet/ };
  for (const days of [2, -2]) {
    offset = days * 24 * 60 * 60 * 1000;
    await t.rejects(connection.json(agent.url, '/v1/info', call), refused);
  }
  t.match(lines(), /expired or not valid yet/);
});

t.test('sockets without a usable certificate have no role', async (t) => {
  const usage = { ext_key_usage: ['1.3.6.1.5.5.7.3.2'] };
  const webhook = { subject: { CN: 'archwright-webhook' } };
  const socket = (certificate: object, authorized = true) => ({
    authorized,
    getPeerCertificate: () => certificate,
  });
  const cases: [object, RegExp][] = [
    [new Socket(), /no verified client certificate/],
    [socket({ ...webhook, ...usage }, false), /no verified client certificate/],
    [socket({}), /has no role/],
    [socket({ subject: { CN: ['archwright-webhook', 'x'] }, ...usage }), /has no role/],
    [socket(webhook), /not for client authentication/],
    [socket({ ...webhook, ...usage }), /expired or not valid yet/],
  ];
  for (const [from, problem] of cases) like(t, roleProblem(from as never, systemClock), problem);
});
