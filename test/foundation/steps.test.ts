/** End-to-end tests kill a leader at each step of its operations. */
import { globSync, readFileSync } from 'node:fs';
import t from 'tap';
import { killedAt } from '../e2e/cluster/faults/steps.ts';
import { root } from './sources.ts';

const files = globSync('src/controller/**/*.ts', { cwd: root });

/** The text of a call of `step` as a pattern: placeholders match names. */
function patternOf(argument: string): RegExp {
  const [, , text = ''] = /^(['`])(.*)\1$/.exec(argument) ?? [];
  return new RegExp(`^${text.replaceAll(/\$\{[^}]+\}/g, '[a-z-]+')}$`);
}

t.test('a test kills a leader at every step of the controller', async (t) => {
  const calls = files.flatMap((file) =>
    [...readFileSync(`${root}${file}`, 'utf8').matchAll(/\bstep\(([^)]*)\)/g)].map(([, argument = '']) => ({
      file,
      argument,
    })),
  );
  t.ok(calls.length >= 16, `${calls.length} steps`);
  const names = Object.values(killedAt).flat();
  for (const { file, argument } of calls) {
    t.match(argument, /^(['`])[a-z-]+\/[^/]+\1$/, `${file}: the name of a step is a literal in its call`);
    const pattern = patternOf(argument);
    t.ok(
      names.some((name) => pattern.test(name)),
      `${file}: ${argument} is in killedAt, which lists where a leader is killed`,
    );
  }
  for (const name of names) {
    t.ok(
      calls.some(({ argument }) => patternOf(argument).test(name)),
      `${name} is a step`,
    );
  }
});
