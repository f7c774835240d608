/** Where a leader may be killed in the middle of something, an end-to-end test does it. */
import { globSync, readFileSync } from 'node:fs';
import t from 'tap';
import { killedAt } from '../e2e/cluster/faults/steps.ts';
import { root } from './sources.ts';

/** `archwright clean` tells its progress in steps of another kind. */
const files = globSync('src/controller/**/*.ts', { cwd: root, exclude: ['src/controller/clean/**'] });

/** What a call of `step` says, as a pattern: what is put in at run time is a name, or several. */
function patternOf(argument: string): RegExp {
  const [, , text = ''] = /^(['`])(.*)\1$/.exec(argument) ?? [];
  return new RegExp(`^${text.replaceAll(/\$\{[^}]+\}/g, '[a-z-]+')}$`);
}

t.test('every step of the controller has a test that kills a leader there', async (t) => {
  const calls = files.flatMap((file) =>
    [...readFileSync(`${root}${file}`, 'utf8').matchAll(/\bstep\(([^)]*)\)/g)].map(([, argument = '']) => ({
      file,
      argument,
    })),
  );
  t.ok(calls.length >= 16, `${calls.length} steps`);
  const names = Object.values(killedAt).flat();
  for (const { file, argument } of calls) {
    t.match(argument, /^(['`])[a-z-]+\/[^/]+\1$/, `${file}: the name of a step stands in its call`);
    const pattern = patternOf(argument);
    t.ok(
      names.some((name) => pattern.test(name)),
      `${file}: ${argument} is in killedAt, which says where a leader is killed`,
    );
  }
  for (const name of names) {
    t.ok(
      calls.some(({ argument }) => patternOf(argument).test(name)),
      `${name} is a step`,
    );
  }
});
