/** The examples and numbers of docs/reference/agent-api.md are those of the program. */
import { readFile } from 'node:fs/promises';
import t from 'tap';
import { ApiError, type ApiErrorCode } from '../../../daemon/api/outcomes.ts';
import { defaultApiLimits } from '../../../daemon/api/api.ts';
import { deadlineLimits, maxImages, parseFactsRequest } from '../../../daemon/api/facts.ts';
import { credentialSourceNames } from '../../../src/credentials/credential.ts';
import { readProblems } from '../../../src/credentials/problems.ts';
import { factsErrorCodes } from '../../../src/images/facts/facts.ts';
import { readFacts } from '../../../src/images/facts/wire.ts';
import { readExecReport } from '../../../src/nodes/exec-report.ts';
import { readNodeReport } from '../../../src/nodes/node-report.ts';
import { startTestAgent } from '../support.ts';

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
