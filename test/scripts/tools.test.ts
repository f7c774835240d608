/** Tools for developers: test vectors, fuzzing and mutants. */
import t from 'tap';
import { runVectors } from '../../scripts/vectors/main.ts';
import { like } from '../support/like.ts';
import { describeFinding } from '../../scripts/fuzz/main.ts';
import { defaultLimits, run as fuzzIn, type Fuzzed, type Limits } from '../../scripts/fuzz/pool.ts';
import { draw } from '../../scripts/mutants/main.ts';
import { mutantsOf } from '../../scripts/mutants/mutate.ts';
import { testsOf } from '../../scripts/mutants/tests.ts';

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
  const passing = t.testdir({ 'any.json': file(...good), 'notes.txt': 'no vectors', sub: {} });
  t.strictSame(await run(passing), { code: 0, stdout: '4 passed, 0 failed\n', stderr: '' });
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

const bad = new URL('fuzz-targets.ts', import.meta.url).href;

/** Runs the targets one after the other in one process. */
function fuzzAll(targets: string[], seed: number, inputs: number, more?: Partial<Limits>) {
  const shares = targets.map((target) => ({ target, inputs }));
  return fuzzIn({ shares, seed, workers: 1, limits: { ...defaultLimits, batch: 50, ...more }, module: bad });
}

async function fuzz(...[target, ...more]: [string, number, number, Partial<Limits>?]): Promise<Fuzzed> {
  const [fuzzed] = await fuzzAll([target], ...more);
  if (!fuzzed) throw new Error('no result');
  return fuzzed;
}

t.test('an unexpected error is reported with the smallest input and the seed of its batch', async (t) => {
  const [finding] = (await fuzz('crashing', 5, 60_000)).findings;
  like(t, finding, { target: 'crashing', message: /unexpected error: TypeError: b was not expected/ });
  t.match(finding?.input, /^Buffer\.from\(.*(?:b|62)/);
  const again = await fuzz('crashing', finding?.seed ?? 0, 50);
  t.equal(again.findings[0]?.input, finding?.input, 'it is found again at once');
  t.match(
    finding && describeFinding(finding),
    /\n {2}input: Buffer.*\n {2}again: npm run fuzz -- --inputs 1 --seed \d+ "crashing"\n$/,
  );
  like(t, (await fuzz('rejecting', 1, 1)).findings, [{ message: /RangeError: later/ }]);
});

t.test('a large result, a long message and a hanging process are reported', async (t) => {
  like(t, await fuzzAll(['growing', 'verbose', 'silent'], 1, 50), [
    { findings: [{ message: /characters of output for \d+ bytes/ }] },
    { findings: [{ message: /a message of \d+ characters/ }] },
    { inputs: 50, findings: [{ message: /no answer/ }] },
  ]);
});

t.test('a hang and excessive memory are reported, and the next target gets a new process', async (t) => {
  const hanging = await fuzz('hanging', 1, 1, { batchMs: 3000 });
  like(t, hanging.findings, [
    { target: 'hanging', seed: 1, message: /a batch of 50 inputs did not end within 3000 ms/ },
  ]);
  const [hoarding, ...good] = await fuzzAll(['hoarding', 'good', 'refusing'], 1, 120, { memoryMb: 64 });
  like(t, hoarding?.findings, [{ message: /the process ended with .*ran out of memory/ }]);
  for (const fuzzed of good) like(t, fuzzed, { inputs: 120, findings: [] }, fuzzed.target);
});

t.test('operators, literals, statements and early exits have mutants', async (t) => {
  const cases: [text: string, mutants: string[]][] = [
    ['const is: boolean = a < b;', ['< → <=', '< → >=']],
    ['f(a === b || !c);', ['f(a === b || !c); → ;', '|| → &&', '=== → !==', '! → ']],
    ["const is = kind === 'Pod';", ['=== → !==', "'Pod' → 'Pod-other'"]],
    ["switch (a) { case 'x': }", ["'x' → 'x-other'"]],
    ["const code = 'not-found';", ["'not-found' → 'not-found-other'"]],
    ['const next = [n - 1, 2, true];', ['- → +', '1 → 0', '2 → 1', 'true → false']],
    ['for (;;) { if (a) break; }', ['a → false']],
    ['if (a) b = 3; else c();', ['b = 3; → ;', 'c(); → ;']],
    ["this.log.info(a && b); const t = `${a && b}`; const m = { message: a && 'x' };", []],
    ["import { a } from 'not-found'; type T = 'a-b' | 0; interface I { a: 1 }", []],
  ];
  for (const [text, mutants] of cases)
    t.strictSame(
      mutantsOf(text).map(({ before, after }) => `${before} → ${after}`),
      mutants,
      text,
    );
});

t.test('a mutant has its line, and replaces exactly its text', async (t) => {
  const text = 'const a: number = 1;\nconst b = x\n  // A comment with && in it.\n  && y;\n';
  for (const { line, start, before } of mutantsOf(text)) {
    t.equal(text.slice(start, start + before.length), before);
    t.equal(line, before === '&&' ? 4 : 1);
  }
});

t.test('a seed draws the same sample; paths limit it', async (t) => {
  t.strictSame(draw(20, 1, ['src/names']), draw(20, 1, ['src/names']));
  t.notSame(draw(20, 1, ['src/names']), draw(20, 2, ['src/names']));
  const [first] = draw(1, 1, ['src/placement/decide.ts']);
  t.ok(first);
  const lines = draw(20, 1, [`${first?.path}:${first?.line}`]).map(({ line }) => line);
  t.strictSame([...new Set(lines)], [first?.line]);
});

t.test('tests of the room that import the file run, the nearest first', async (t) => {
  const tests = testsOf('src/controller/features/taints/own-taint.ts');
  t.match(tests[0], 'controller/features/taints/own-taint.test.ts');
  t.match(tests[1], 'controller/features/taints/');
  t.match(tests.at(-1), /^controller\/(?:walk|controller)/);
  t.notOk(tests.includes('controller/features/gates/gates.test.ts'));
  t.ok(testsOf('cmd/program/main.ts').includes('cmd/program/shell.test.ts'), 'it starts the program');
});
