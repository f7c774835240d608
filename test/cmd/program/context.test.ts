import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t from 'tap';
import { createPlainLog, startup } from '../../../cmd/program/context.ts';
import { table } from '../../../cmd/program/table.ts';
import { secret } from '../../../src/telemetry/secret.ts';

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
