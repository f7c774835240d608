/** Feeds the examples of every parser target, for the coverage in `parsers.test.ts`. */
import { parserTargets } from './targets.ts';

for (const { examples, feed, close } of parserTargets) {
  for (const example of examples) {
    try {
      await feed(Buffer.from(example), example);
    } catch {
      // Some examples are invalid.
    }
  }
  await close?.();
}

process.exit();
