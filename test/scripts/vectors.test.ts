import t from 'tap';
import { runVectors } from '../../scripts/vectors/main.ts';
import { like } from '../support/like.ts';

async function run(directory = '') {
  let stdout = '';
  let stderr = '';
  const code = await runVectors(directory, {
    out: (text) => (stdout += text),
    err: (text) => (stderr += text),
  });
  return { code, stdout, stderr };
}

const lastLine = (stdout: string): string | undefined => stdout.trimEnd().split('\n').at(-1);

const vector = (id: string, kind: string, input: object, expected: unknown) => ({
  id,
  kind,
  name: `name of ${id}`,
  input,
  expected,
});
const file = (...vectors: unknown[]): string => JSON.stringify({ about: '', kinds: {}, vectors });

const good = vector('a/1', 'kubelet_default_tag', { image: 'a' }, { image: 'a:latest' });
const refused = vector(
  'a/2',
  'parse_strict',
  { image: ':a' },
  { ok: false, error: 'invalid reference format' },
);
const partly = vector(
  'a/3',
  'kubelet_parse_image_name',
  { image: 'A' },
  { ok: false, errorContains: 'lowercase' },
);
const message = vector('a/4', 'token_response', { response: {} }, { error: 'no token' });

t.test('all vectors pass, whatever the file name', async (t) => {
  const directory = t.testdir({
    'any.json': file(good, refused, partly, message),
    'notes.txt': 'no vectors',
    sub: {},
  });
  const { code, stdout, stderr } = await run(directory);
  like(t, { code, stderr }, { code: 0, stderr: '' });
  t.equal(stdout, '4 passed, 0 failed\n');
});

t.test('each failing case is reported', async (t) => {
  const wrong = [
    vector('b/1', 'kubelet_default_tag', { image: 'b' }, { image: 'b:newest' }),
    vector('b/2', 'parse_strict', { image: ':a' }, { ok: false, error: 'another reason' }),
    vector('b/3', 'kubelet_parse_image_name', { image: 'A' }, { ok: false, errorContains: 'another reason' }),
    vector('b/4', 'parse_strict', { image: ':a' }, { string: 'a' }),
    vector('b/5', 'parse_strict', { image: 'a' }, { ok: false, error: 'invalid reference format' }),
    vector('b/6', 'parse_strict', { other: 'a' }, { ok: false }),
    vector('b/7', 'parse_strict', { image: 'a' }, null),
    vector('b/8', 'kubelet_parse_image_name', { image: 'a' }, { ok: true, errorContains: '' }),
  ];
  const { code, stdout } = await run(t.testdir({ 'b.json': file(good, ...wrong) }));
  t.equal(code, 1);
  t.equal(lastLine(stdout), '1 passed, 8 failed');
  for (const { id } of wrong)
    t.match(stdout, new RegExp(`^FAILED b\\.json ${id} \\(\\w+\\): name of ${id}$`, 'm'));
  t.match(
    stdout,
    '  input    {"image":"b"}\n  expected {"image":"b:newest"}\n  actual   {"image":"b:latest"}\n',
  );
  t.match(stdout, 'actual   {"ok":false,"error":"invalid reference format"}');
  t.match(stdout, 'actual   "fault: input.image is not a string"');
});

t.test('what the product does not have is counted, and the rest of the case is compared', async (t) => {
  const input = { pattern: '[', target: 'a.test' };
  const cases = [true, false].map((match, index) =>
    vector(`d/${index}`, 'urls_match', input, { match, error: 'a text of Go' }),
  );
  const { code, stdout } = await run(t.testdir({ 'd.json': file(...cases) }));
  t.equal(code, 1);
  t.match(stdout, /^FAILED d\.json d\/0/);
  t.match(
    stdout,
    /intended differences, not compared:\n {2}d\.json urls_match, member error: 2\n1 passed, 1 failed/,
  );
});

t.test('unreadable vectors end with exit code 2 and one line', async (t) => {
  const cases: [name: string, directory: string | undefined, why: RegExp][] = [
    ['unset', undefined, /^set ARCHWRIGHT_VECTORS to the directory of the vector files\n$/],
    ['missing', `${t.testdirName}-missing`, /^ARCHWRIGHT_VECTORS: cannot read the directory .*ENOENT.*\n$/],
  ];
  const broken: Record<string, [content: string, why: RegExp]> = {
    syntax: ['{', /a\.json: .*JSON.*\n$/],
    object: ['{"vectors":{}}', /a\.json: has no list "vectors"\n$/],
    kind: [file(good, { ...good, kind: 5 }), /a\.json: vectors\[1\] lacks one of/],
  };
  const tree = Object.fromEntries(
    Object.entries(broken).map(([name, [content]]) => [name, { 'a.json': content }]),
  );
  const root = t.testdir({ ...tree, none: { 'notes.txt': '' } });
  cases.push(['none', `${root}/none`, /^ARCHWRIGHT_VECTORS: no \.json file in /]);
  for (const [name, [, why]] of Object.entries(broken)) cases.push([name, `${root}/${name}`, why]);
  for (const [name, directory, why] of cases) {
    const { code, stdout, stderr } = await run(directory);
    like(t, { code, stdout, stderr }, { code: 2, stdout: '', stderr: why }, name);
  }
});

const upstream = process.env['ARCHWRIGHT_VECTORS'];
if (upstream !== undefined && upstream !== '') {
  t.test('the vectors of this machine pass', async (t) => {
    const { code, stdout, stderr } = await run(upstream);
    like(t, { code, stderr }, { code: 0, stderr: '' }, stdout);
    t.match(lastLine(stdout), /^[1-9]\d* passed, 0 failed$/);
  });
}
