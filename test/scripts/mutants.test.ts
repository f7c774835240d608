import t from 'tap';
import { draw } from '../../scripts/mutants/main.ts';
import { mutantsOf } from '../../scripts/mutants/mutate.ts';
import { testsOf } from '../../scripts/mutants/tests.ts';

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
  t.ok(testsOf('cmd/program/main.ts').includes('cmd/program/launcher.test.ts'), 'it starts the program');
});
