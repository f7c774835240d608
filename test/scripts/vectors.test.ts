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

const vector = (id: string, kind: string, input: object, expected: unknown) => ({
  id,
  kind,
  name: `name of ${id}`,
  input,
  expected,
});
const file = (...vectors: unknown[]): string => JSON.stringify({ about: '', kinds: {}, vectors });
const strict = (id: string, image: string, expected: unknown) =>
  vector(id, 'parse_strict', { image }, expected);

const good = [
  vector('a/1', 'kubelet_default_tag', { image: 'a' }, { image: 'a:latest' }),
  strict('a/2', ':a', { ok: false, error: 'invalid reference format' }),
  vector('a/3', 'kubelet_parse_image_name', { image: 'A' }, { ok: false, errorContains: 'lowercase' }),
  vector('a/4', 'token_response', { response: {} }, { error: 'no token' }),
];

t.test('all vectors pass, whatever the file name', async (t) => {
  const directory = t.testdir({ 'any.json': file(...good), 'notes.txt': 'no vectors', sub: {} });
  t.strictSame(await run(directory), { code: 0, stdout: '4 passed, 0 failed\n', stderr: '' });
});

t.test('each failing case is reported', async (t) => {
  const wrong = [
    vector('b/1', 'kubelet_default_tag', { image: 'b' }, { image: 'b:newest' }),
    strict('b/2', ':a', { ok: false, error: 'another reason' }),
    vector('b/3', 'kubelet_parse_image_name', { image: 'A' }, { ok: false, errorContains: 'another reason' }),
    strict('b/4', ':a', { string: 'a' }),
    strict('b/5', 'a', { ok: false, error: 'invalid reference format' }),
    vector('b/6', 'parse_strict', { other: 'a' }, { ok: false }),
    strict('b/7', 'a', null),
  ];
  // The product has no texts of Go: they are counted, and the rest of the case is compared.
  const glob = { pattern: '[', target: 'a.test' };
  const texts = [true, false].map((match, index) =>
    vector(`d/${index}`, 'urls_match', glob, { match, error: 'a text of Go' }),
  );
  const { code, stdout } = await run(t.testdir({ 'b.json': file(...good, ...wrong, ...texts) }));
  t.equal(code, 1);
  t.match(
    stdout,
    /intended differences, not compared:\n {2}b\.json urls_match, member error: 2\n5 passed, 8 failed\n$/,
  );
  for (const { id } of [...wrong, { id: 'd/0' }])
    t.match(stdout, new RegExp(`^FAILED b\\.json ${id} \\(\\w+\\): name of ${id}$`, 'm'));
  t.match(
    stdout,
    '  input    {"image":"b"}\n  expected {"image":"b:newest"}\n  actual   {"image":"b:latest"}\n',
  );
  t.match(stdout, 'actual   "fault: input.image is not a string"');
});

t.test('unreadable vectors end with exit code 2 and one line', async (t) => {
  const root = t.testdir({
    syntax: { 'a.json': '{' },
    object: { 'a.json': '{"vectors":{}}' },
    kind: { 'a.json': file(good[0], { ...good[0], kind: 5 }) },
    none: { 'notes.txt': '' },
  });
  const cases: [directory: string | undefined, why: RegExp][] = [
    [undefined, /^set ARCHWRIGHT_VECTORS to the directory of the vector files\n$/],
    [`${root}/missing`, /^ARCHWRIGHT_VECTORS: cannot read the directory .*ENOENT.*\n$/],
    [`${root}/none`, /^ARCHWRIGHT_VECTORS: no \.json file in /],
    [`${root}/syntax`, /a\.json: .*JSON.*\n$/],
    [`${root}/object`, /a\.json: has no list "vectors"\n$/],
    [`${root}/kind`, /a\.json: vectors\[1\] lacks one of/],
  ];
  for (const [directory, stderr] of cases)
    like(t, await run(directory), { code: 2, stdout: '', stderr }, directory);
});

const upstream = process.env['ARCHWRIGHT_VECTORS'];
if (upstream !== undefined && upstream !== '') {
  t.test('the vectors of this machine pass', async (t) => {
    const { code, stdout, stderr } = await run(upstream);
    like(t, { code, stderr }, { code: 0, stderr: '' }, stdout);
    t.match(stdout, /^[1-9]\d* passed, 0 failed$/m);
  });
}
