/** On directories as a kernel has that cannot trace. `bench/tracing.ts` needs a kernel that can. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startTracing } from '../../../daemon/tracing/tracing.ts';
import { captureLog } from '../../support/captured.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

t.test('a kernel that cannot trace is no error, and nothing is left', async (t) => {
  const { log, lines } = captureLog();
  const hostRoot = t.testdir({ proc: { 2: { comm: 'sh\n' } } });
  const instances = join(hostRoot, 'instances');
  const state = async () => {
    const tracing = await startTracing(instances, join(hostRoot, 'proc'), createFakeClock(), log);
    await tracing.close();
    return tracing.report();
  };
  t.strictSame(await state(), { state: 'nested', errors: [] });
  writeFileSync(join(hostRoot, 'proc/2/comm'), 'kthreadd\n');
  t.strictSame(await state(), { state: 'no-tracefs', errors: [] }, 'no directory');
  // What a crash left.
  mkdirSync(join(instances, 'archwright-exec'), { recursive: true });
  t.strictSame(await state(), { state: 'no-tracefs', errors: [] }, 'a directory that is not tracefs');
  t.strictSame(readdirSync(instances), []);
  t.equal(lines.length, 3);
});
