/** Each target gets some dozens of inputs with a fixed seed, and its own examples. */
import t from 'tap';
import { sized } from '../exhaustive.ts';
import { assertFuzz, feed, FuzzFinding, type FuzzTarget } from './target.ts';
import { processTargets } from './processes.ts';
import { parserTargets, targets } from './targets.ts';

for (const target of parserTargets) {
  t.test(target.name, async (t) => {
    t.teardown(() => target.close?.());
    await t.resolves(assertFuzz(target, target.runs ?? sized(30, 300)));
  });
}

t.teardown(async () => {
  for (const { close } of processTargets) await close?.();
});
for (const target of processTargets) {
  t.test(target.name, async (t) => {
    await t.resolves(assertFuzz(target, sized(20, 100)));
    t.ok(await target.check?.(), 'a valid request succeeds, and memory is below the limit of the chart');
  });
}

t.test('each target accepts at least one of its examples', async (t) => {
  for (const { name, examples, feed, close } of parserTargets) {
    let understood = 0;
    for (const example of examples) {
      try {
        await feed(Buffer.from(example), example);
        understood += 1;
      } catch {
        // Some examples are invalid.
      }
    }
    t.ok(understood > 0, name);
    await close?.();
  }
});

t.test('names of targets are unique', async (t) => {
  t.equal(new Set(targets.map(({ name }) => name)).size, targets.length);
});

t.test('a target that breaks a rule fails', async (t) => {
  const target: FuzzTarget = {
    name: 'x',
    examples: ['x'],
    words: [],
    expected: [RangeError],
    feed: (input) => {
      if (input.length === 0) throw new RangeError('expected');
      throw new TypeError('unexpected');
    },
  };
  await t.resolves(feed(target, Buffer.alloc(0)));
  await t.rejects(feed(target, Buffer.from('x')), FuzzFinding);
  await t.rejects(assertFuzz(target, 100), /unexpected/);
});
