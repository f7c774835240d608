/** The box itself: `ARCHWRIGHT_E2E_CACHE` works in it, and a missing program is an error. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';

const cache = mkdtempSync(join(tmpdir(), 'archwright-e2e-cache-'));
t.teardown(() => rmSync(cache, { recursive: true }));
process.env['ARCHWRIGHT_E2E_CACHE'] = cache;
process.env['KUBE_BIN_DIR'] = '';
const { boxProblem, runBox } = await import('./box.ts');

t.test('the box finds programs in the cache, and names missing ones', async (t) => {
  t.equal(boxProblem(), undefined, 'a box can run here');
  const distribution = join(cache, 'distribution-v3.1.2');
  writeFileSync(distribution, '', { mode: 0o755 });
  const lines: string[] = [];
  const { code, stderr } = await runBox({
    entry: new URL('programs-inside.ts', import.meta.url),
    folders: [],
    env: {},
    timeoutMs: 60_000,
    onLine: (line) => lines.push(line),
  });
  t.equal(code, 0, stderr);
  t.equal(lines[0], distribution);
  t.match(lines[1], /image.* is missing, and the box has no network to get it; looked in /);
});
