/** Assertions compare exactly. */
import { globSync, readFileSync } from 'node:fs';
import t from 'tap';
import { root } from './sources.ts';

const files = globSync('test/**/*.ts', { cwd: root, exclude: ['test/support/like.ts'] });

/** The second argument of a call, and what follows it. @param rest the text after the opening parenthesis */
function secondArgument(rest: string): string {
  let depth = 0;
  for (const { 0: token, index } of rest.matchAll(
    /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|[(){}[\],]/g,
  )) {
    if (depth === 0 && token === ',') return rest.slice(index + 1).trimStart();
    if ('({['.includes(token)) depth += 1;
    if (')}]'.includes(token)) depth -= 1;
  }
  return '';
}

function looseIn(text: string): string[] {
  return [...text.matchAll(/\bt\.(same|match)\(/g)].flatMap(({ 0: call, 1: name, index }) => {
    const pattern = secondArgument(text.slice(index + call.length));
    return name === 'match' && /^(?:[/'"`]|new RegExp\()/.test(pattern) ? [] : [call + pattern.slice(0, 20)];
  });
}

t.test(
  'lists and objects are compared by strictSame, or by like, which counts the items of lists',
  async (t) => {
    t.ok(files.length > 300);
    for (const file of files) t.strictSame(looseIn(readFileSync(`${root}${file}`, 'utf8')), [], file);
  },
);

t.test('the calls that accept too much', async (t) => {
  const same = ['t.', 'same('].join('');
  const match = ['t.', 'match('].join('');
  for (const call of [
    `${same}1, '1')`,
    `${match}a(b, [c]), [])`,
    `${match}'a,b', pattern)`,
    `${match}\n a,\n {})`,
  ])
    t.equal(looseIn(call).length, 1, call);
  for (const call of [
    `${match}a(b, [c]), /x/)`,
    `${match}\`\${a},\`, 'b')`,
    `${match}\n a,\n new RegExp(b))`,
  ])
    t.strictSame(looseIn(call), [], call);
});
