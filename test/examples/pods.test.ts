/** Each example has its expected result in a comment, and a row in the table. The demo compares the decisions. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { examples } from './demo/run.ts';

t.test('every example has a comment with its expected result, and a row in the table', async (t) => {
  const table = readFileSync('examples/pods/README.md', 'utf8');
  for (const file of examples) {
    t.match(readFileSync(`examples/pods/${file}`, 'utf8'), /^# [^\n]+\n(?:# [^\n]+\n)*# Expected: /u, file);
    t.ok(table.includes(`\`${file}\``), file);
  }
});
