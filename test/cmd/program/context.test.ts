/** How subcommands start, write and stop. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t from 'tap';
import { createPlainLog, startup } from '../../../cmd/program/context.ts';
import { onStopSignal, stoppedCode } from '../../../cmd/program/exit.ts';
import { table } from '../../../cmd/program/table.ts';
import { showAgain } from '../../../cmd/program/terminal.ts';
import { KubeError, type KubeErrorCode } from '../../../src/kube/api/errors.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { neverAborted } from '../../support/never-aborted.ts';

t.test('the log level follows the configuration file, and metrics show its state', async (t) => {
  const file = join(t.testdir({ 'a.toml': 'logLevel = "warn"\n' }), 'a.toml');
  const written: string[] = [];
  await using opened = new AsyncDisposableStack();
  const sources = { file, env: {}, flags: {} };
  const io = {
    env: {},
    stdin: Readable.from([]),
    out: () => t.fail('wrote to standard output'),
    err: (text: string) => written.push(text),
  };
  const { live, log, metrics } = await startup({ sources, io }, opened);
  t.match(await metrics.render(), /^archwright_build_info\{version="\d/m);
  t.match(await metrics.render(), 'archwright_config_last_reload_successful 1');

  log.info('not shown');
  t.strictSame(written, []);
  writeFileSync(file, 'logLevel = "debug"\n');
  await live.refresh();
  log.debug('shown');
  t.match(written.at(-1), '"msg":"shown"');
});

t.test('the plain log has one line per event, without secrets', async (t) => {
  let text = '';
  const log = createPlainLog({ err: (line) => (text += line) }, 'warn');
  const password = 'password-of-the-plain-log';
  secret(password);
  log.info('not said');
  log.warn({ origin: '/etc/x.toml', problem: `has ${password} in it` }, 'some credentials are not used');
  log.error({ err: new Error('no room') }, 'writing failed');
  log.warn('alone');
  t.equal(
    text,
    'archwright: warn: some credentials are not used: origin /etc/x.toml, problem has [secret] in it\n' +
      'archwright: error: writing failed: error no room\n' +
      'archwright: warn: alone\n',
  );
});

t.test('columns are as wide as their widest cell, without trailing spaces', async (t) => {
  const rows = [
    ['A', 'LONG HEADER', 'C'],
    ['wide cell', 'b', ''],
    ['a', '', 'c'],
  ];
  t.equal(table(rows, '> '), '> A          LONG HEADER  C\n> wide cell  b\n> a                       c\n');
  t.equal(table([]), '');
});

/** Shows a result after an error. */
async function shown(watch: boolean, code: KubeErrorCode) {
  let text = '';
  const io = {
    env: {},
    stdin: process.stdin,
    isTerminal: true,
    out: (more: string) => (text += more),
    err: () => undefined,
  };
  const errors = [new KubeError(code, 'GET /version', 'no answer')];
  const look = async () => {
    const error = errors.pop();
    if (error) throw error;
    return { text: 'all is well\n', code: 0, isOver: true };
  };
  return { code: await showAgain({ flags: { watch }, io, stop: neverAborted }, look), text };
}

t.test('with --watch it goes on while the API server does not answer', async (t) => {
  const clear = '\u001B[H\u001B[2J';
  t.strictSame(await shown(true, 'unavailable'), {
    code: 0,
    text: `${clear}the cluster does not answer: no answer\n${clear}all is well\n`,
  });
  await t.rejects(shown(true, 'forbidden'), /no answer/);
  await t.rejects(shown(false, 'unavailable'), /no answer/);
});

for (const [name, code] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const) {
  t.test(`the first ${name} requests a stop, the second one ends the process`, async (t) => {
    const end = Promise.withResolvers<number>();
    const stop = onStopSignal(end.resolve);
    // The signal handler does not keep the process alive.
    const alive = setTimeout(() => undefined, 10_000);
    t.teardown(() => clearTimeout(alive));
    t.equal(stop.aborted, false);
    process.kill(process.pid, name);
    await once(stop, 'abort');
    t.equal(stop.reason, name);
    t.equal(stoppedCode(stop), code);
    process.kill(process.pid, name);
    t.equal(await end.promise, code);
  });
}
