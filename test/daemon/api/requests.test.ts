import { readFile } from 'node:fs/promises';
import { Agent } from 'node:https';
import { Socket } from 'node:net';
import t from 'tap';
import { deadlineLimits, maxImages, parseFactsRequest } from '../../../daemon/api/facts.ts';
import { like } from '../../support/like.ts';
import { ApiError, type ApiErrorCode } from '../../../daemon/api/outcomes.ts';
import { defaultApiLimits, roleProblem } from '../../../daemon/api/api.ts';
import { credentialSourceNames } from '../../../src/credentials/credential.ts';
import { readProblems } from '../../../src/credentials/problems.ts';
import { factsErrorCodes } from '../../../src/images/facts/facts.ts';
import { readFacts } from '../../../src/images/facts/wire.ts';
import { readExecReport } from '../../../src/nodes/exec-report.ts';
import { readNodeReport } from '../../../src/nodes/node-report.ts';
import { startTestAgent } from '../support.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { systemClock } from '../../../src/async/clock.ts';
import { createCa } from '../../support/certificates.ts';
import { connect as connectFleet, createPki } from '../../fleet/support.ts';
import { neverAborted } from '../../support/never-aborted.ts';

const good = { images: [{ image: 'nginx', maxAgeMs: 5000 }], deadlineMs: 100 };

const parse = (value: unknown) => parseFactsRequest(Buffer.from(JSON.stringify(value)));

t.test('valid requests are read', async (t) => {
  like(t, parse(good), good);
  t.equal(parse({ ...good, images: [{ image: 'x'.repeat(1024) }] }).images.length, 1);
  like(t, parse({ images: [], deadlineMs: 0.5 }), { images: [], deadlineMs: deadlineLimits.leastMs });
  like(t, parse({ ...good, deadlineMs: 1e12 }), { deadlineMs: deadlineLimits.mostMs });
  t.equal(
    parse({ ...good, images: Array.from({ length: maxImages }, () => good.images[0]) }).images.length,
    maxImages,
  );
  const ages = [{ image: 'x', maxAgeMs: 0 }, { image: 'x' }];
  t.strictSame(parse({ ...good, images: ages }).images, [
    ages[0],
    { image: 'x', maxAgeMs: Number.POSITIVE_INFINITY },
  ]);
  const serviceAccount = { namespace: 'team', name: 'build.er' };
  t.strictSame(parse({ ...good, serviceAccount }).serviceAccount, serviceAccount);
  t.notOk('serviceAccount' in parse(good));
});

t.test('invalid requests are refused with the field', (t) => {
  const image = { image: 'nginx', maxAgeMs: 5000 };
  const cases: [unknown, RegExp][] = [
    [null, /^the body must be an object$/],
    [[], /^images is missing$/],
    [{ images: [image] }, /^deadlineMs\b/],
    [{ images: [image], deadlineMs: 0 }, /^deadlineMs\b/],
    [{ ...good, other: 1 }, /^other is not a known field$/],
    [{ ...good, ['x'.repeat(1000)]: 1 }, /^"x{64}" is not a known field$/],
    [{ ...good, images: ['nginx'] }, /^images\.0\b/],
    [{ ...good, images: [image, null] }, /^images\.1 must be an object$/],
    [{ ...good, images: [image, { image: 'x', maxAgeMs: '5' }] }, /^images\.1\.maxAgeMs\b/],
    [{ ...good, images: [{ ...image, maxAgeMs: -1 }] }, /^images\.0\.maxAgeMs\b/],
    [{ ...good, images: [{ ...image, image: '' }] }, /^images\.0\.image\b/],
    [{ ...good, images: [{ ...image, image: 'x'.repeat(1025) }] }, /^images\.0\.image\b/],
    [{ ...good, images: [{ ...image, tag: 'x' }] }, /^images\.0\.tag is not a known field$/],
    [{ ...good, images: Array.from({ length: maxImages + 1 }, () => image) }, /^images\b/],
    [{ ...good, serviceAccount: null }, /^serviceAccount must be an object$/],
    [{ ...good, serviceAccount: { namespace: 'team', name: '' } }, /^serviceAccount\b.*names/],
    [{ ...good, serviceAccount: { namespace: 'team', name: 'hunter22,b' } }, /^serviceAccount\b.*names/],
    [
      { ...good, serviceAccount: { namespace: 'a', name: 'b', uid: 'c' } },
      /^serviceAccount\.uid is not a known field$/,
    ],
    [{ ...good, auths: { 'r.example': 'ann:hunter22' } }, /auths/],
  ];
  for (const [value, message] of cases) {
    const wanted = { code: 'bad-request', status: 400, message };
    t.throws(() => parse(value), wanted, JSON.stringify(value)?.slice(0, 80));
    t.throws(() => parse(value), { message: /^(?!.*hunter22)/ });
  }
  t.end();
});

t.test('invalid JSON is refused', (t) => {
  const message = 'the body is not JSON';
  for (const body of ['', '{', '{"images":', "{'a':1}", 'NaN', '[1,]', '{"\xff":1}']) {
    t.throws(() => parseFactsRequest(Buffer.from(body, 'latin1')), { code: 'bad-request', message }, body);
  }
  const refused: [string, object][] = [
    ['['.repeat(100_000) + ']'.repeat(100_000), {}],
    ['{"images":[],"deadlineMs":1e999}', { message: /^deadlineMs / }],
    ['{"images":[],"deadlineMs":1,"__proto__":{"images":[]}}', {}],
  ];
  for (const [body, more] of refused) {
    t.throws(() => parseFactsRequest(Buffer.from(body)), { code: 'bad-request', ...more }, body.slice(0, 60));
  }
  t.end();
});

/** Its examples and numbers are those of the program. */
const page = await readFile(new URL('../../../docs/reference/agent-api.md', import.meta.url), 'utf8');

function example(name: string): string {
  const text = new RegExp(`\`\`\`json ${name}\n(?<text>[^]*?)\n\`\`\``).exec(page)?.groups?.['text'];
  if (text === undefined) throw new Error(`no example ${name}`);
  return text;
}

t.test('the documented request is valid and gets a response', async (t) => {
  t.equal(parseFactsRequest(Buffer.from(example('request'))).images.length, 2);
  const { post } = await startTestAgent(t);
  t.equal((await post(example('request'))).status, 200);
});

t.test('the documented response has exactly the fields of image facts', (t) => {
  const results = example('response')
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
  for (const result of results) t.strictSame(readFacts(result), result);
  t.end();
});

t.test('the documented information has exactly the fields that are sent', async (t) => {
  const { send } = await startTestAgent(t);
  const sent = (await send('GET', '/v1/info')).json as object;
  const info = JSON.parse(example('info')) as {
    readonly node: unknown;
    readonly credentialProblems: unknown;
    readonly execErrors: unknown;
  };
  t.strictSame(Object.keys(info), Object.keys(sent));
  t.strictSame(readNodeReport(info.node), info.node);
  t.strictSame(readProblems(info.credentialProblems), info.credentialProblems);
  t.strictSame(readExecReport(info.execErrors), info.execErrors);
});

t.test('all error codes are documented', (t) => {
  for (const code of [...factsErrorCodes, ...credentialSourceNames]) t.ok(page.includes(`\`${code}\``), code);
  const statuses: Record<ApiErrorCode, number> = {
    'bad-request': 400,
    forbidden: 403,
    'not-found': 404,
    'method-not-allowed': 405,
    timeout: 408,
    'too-large': 413,
    'unsupported-media-type': 415,
    internal: 500,
    overloaded: 503,
  };
  for (const [code, status] of Object.entries(statuses)) {
    t.equal(new ApiError(code as ApiErrorCode, '').status, status);
    t.ok(page.includes(`| ${status} | \`${code}\` |`), code);
  }
  t.end();
});

t.test('the documented limits are those of the program', (t) => {
  const words = page.replaceAll(/\s+/g, ' ');
  t.ok(words.includes(`up to ${maxImages.toLocaleString('en')},`));
  t.ok(words.includes(`from ${deadlineLimits.leastMs} to ${deadlineLimits.mostMs.toLocaleString('en')}`));
  t.ok(page.includes(`more than ${defaultApiLimits.maxBodyBytes / 1_048_576} MiB`));
  t.ok(words.includes(`at most ${defaultApiLimits.maxStreamBytes / 1_048_576} MiB`));
  t.ok(page.includes(`within ${defaultApiLimits.bodyTimeoutMs / 1000} s`));
  t.equal(defaultApiLimits.factsStreams, 4);
  t.equal(defaultApiLimits.streamTimeoutMs, 60_000);
  t.end();
});

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
    '__proto__',
  ];
  for (const cn of roles) {
    const tlsDir = await pki.dir({ cn, client: true, dns: ['archwright-webhook'] });
    for (const request of ['GET /v1/facts', 'POST /v1/facts', 'GET /other']) {
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
