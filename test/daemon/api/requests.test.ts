import t from 'tap';
import { deadlineLimits, maxImages, parseFactsRequest } from '../../../daemon/api/facts.ts';
import { like } from '../../support/like.ts';
import { readFile } from 'node:fs/promises';
import { ApiError, type ApiErrorCode } from '../../../daemon/api/outcomes.ts';
import { defaultApiLimits } from '../../../daemon/api/api.ts';
import { credentialSourceNames } from '../../../src/credentials/credential.ts';
import { readProblems } from '../../../src/credentials/problems.ts';
import { factsErrorCodes } from '../../../src/images/facts/facts.ts';
import { readFacts } from '../../../src/images/facts/wire.ts';
import { readExecReport } from '../../../src/nodes/exec-report.ts';
import { readNodeReport } from '../../../src/nodes/node-report.ts';
import { startTestAgent } from '../support.ts';

const good = { images: [{ image: 'nginx', maxAgeMs: 5000 }], deadlineMs: 100 };

const parse = (value: unknown) => parseFactsRequest(Buffer.from(JSON.stringify(value)));

t.test('valid requests are read', async (t) => {
  like(t, parse(good), good);
  like(t, parse({ ...good, images: [{ image: 'x'.repeat(1024) }] }).images, {
    length: 1,
  });
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
  const { pullSecrets } = parse({
    ...good,
    auths: {
      'r.example/team': { username: 'ann', password: 'secret-of-ann' },
      'r.example': [{ username: 'a', password: 'b' }],
    },
  });
  like(t, await pullSecrets.lookup('r.example/team/app'), [
    { credential: { username: 'ann' }, source: 'pull-secret' },
    { credential: { username: 'a' } },
  ]);
  t.strictSame(await parse(good).pullSecrets.lookup('r.example/team/app'), []);
  const serviceAccount = { namespace: 'team', name: 'build.er' };
  t.strictSame(parse({ ...good, serviceAccount }).serviceAccount, serviceAccount);
  t.notOk('serviceAccount' in parse(good));
});

t.test('invalid requests are refused with the field', (t) => {
  const image = { image: 'nginx', maxAgeMs: 5000 };
  const cases: [unknown, RegExp][] = [
    [null, /^the body must be an object$/],
    [[], /^images is missing$/],
    ['text', /^the body must be an object$/],
    [{ images: {}, deadlineMs: 1 }, /^images must be a list$/],
    [{ images: [image] }, /^deadlineMs\b/],
    [{ images: [image], deadlineMs: '5' }, /^deadlineMs\b/],
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
    ['['.repeat(1_000_000) + ']'.repeat(1_000_000), {}],
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
