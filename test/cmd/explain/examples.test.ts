import { globSync, readFileSync } from 'node:fs';
import t from 'tap';
import { parseObjects } from '../../../cmd/objects/documents.ts';
import { run } from '../run.ts';
import '../world.ts';

const examples = globSync('examples/pods/*.yaml').sort();

t.ok(examples.length > 0, 'there are examples');

// The demo's registries do not run here. There is a result for each object all the same.
for (const file of examples) {
  t.test(file, async (t) => {
    const { code, out, err } = await run(['explain', '-f', file, '-o', 'json', '--inspect-timeout', '2s']);
    t.ok(code === 0 || code === 3, `${code}: ${err}`);
    const { results } = JSON.parse(out) as { results: Readonly<Record<string, unknown>>[] };
    const objects = parseObjects({ file, text: readFileSync(file, 'utf8') }).map(
      ({ value }) => value as { kind: string },
    );
    const workloads = objects.filter(({ kind }) => !['Secret', 'ServiceAccount', 'Namespace'].includes(kind));
    const [found, wanted] = [results.map(({ kind }) => kind), workloads.map(({ kind }) => kind)];
    t.strictSame(found, wanted);
    for (const result of results) {
      t.notOk('error' in result, 'no error');
      t.ok(Array.isArray(result['rules']) && result['rules'].length > 0, 'at least one rule');
    }
  });
}
