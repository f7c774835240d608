/** Attack: a process is made to write its memory, with credentials, to a file. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { keepMemoryPrivate } from '../../src/telemetry/process.ts';
import { run } from '../cmd/run.ts';
import { childEnv, directory } from '../cmd/world.ts';

const module = new URL('../../src/telemetry/process.ts', import.meta.url).href;

t.test('diagnostic reports are off, even if options of Node.js enable them', async (t) => {
  const dir = directory(t);
  const script = `
    const { keepMemoryPrivate } = await import(${JSON.stringify(module)});
    keepMemoryPrivate();
    process.kill(process.pid, 'SIGWINCH');
    setTimeout(() => { throw new Error('fatal'); }, 50);`;
  const args = [
    '--report-on-signal',
    '--report-signal=SIGWINCH',
    '--report-uncaught-exception',
    '--report-on-fatalerror',
    `--report-directory=${dir}`,
    '--report-filename=report.json',
    '--input-type=module',
    '-e',
    script,
  ];
  t.throws(() => execFileSync(process.execPath, args, { env: childEnv, stdio: 'pipe' }), /fatal/);
  t.notOk(existsSync(join(dir, 'report.json')));
});

const noFilter = existsSync('/proc/self/coredump_filter')
  ? false
  : 'only Linux has /proc/self/coredump_filter';

t.test('a core dump contains no memory', { skip: noFilter }, async (t) => {
  const script = `
    const { keepMemoryPrivate } = await import(${JSON.stringify(module)});
    keepMemoryPrivate();
    console.log((await import('node:fs')).readFileSync('/proc/self/coredump_filter', 'utf8'));`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], { env: childEnv });
  t.match(printed.toString().trim(), /^0+$/);
});

t.test('a system without coredump_filter is no error', async (t) => {
  process.report.reportOnSignal = true;
  keepMemoryPrivate(join(directory(t), 'none/coredump_filter'));
  t.equal(process.report.reportOnSignal, false);
  const file = join(directory(t), 'coredump_filter');
  keepMemoryPrivate(file);
  t.equal(readFileSync(file, 'utf8'), '0x0');
});

t.test('the long-running commands protect their memory first', async (t) => {
  for (const subcommand of ['agent', 'webhook']) {
    process.report.reportOnUncaughtException = true;
    t.equal((await run([subcommand])).code, 2, 'without --tls-dir');
    t.equal(process.report.reportOnUncaughtException, false, subcommand);
  }
});
