/** Feeds the examples of every parser target, for `parsers.test.ts`, which measures what they reach. */
import { parserTargets } from './targets.ts';

for (const { examples, feed, close } of parserTargets) {
  for (const example of examples) {
    try {
      await feed(Buffer.from(example));
    } catch {
      // Some are there to be refused.
    }
  }
  await close?.();
}

process.exit();
