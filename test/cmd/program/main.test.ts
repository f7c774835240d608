/** The program as a function: help, errors, and how subcommands start, write and stop. */
import t from 'tap';
import { toggle } from '../../../cmd/program/flag.ts';
import type { Invocation, Subcommand } from '../../../cmd/program/subcommand.ts';
import { subcommands } from '../../../cmd/program/subcommands.ts';
import { secret } from '../../../src/telemetry/secret.ts';
import { run } from '../run.ts';
import { like } from '../../support/like.ts';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createPlainLog, startup } from '../../../cmd/program/context.ts';
import { onStopSignal, stoppedCode, UsageError } from '../../../cmd/program/exit.ts';
import { table, tableOf, type Column } from '../../../cmd/program/table.ts';
import { showAgain } from '../../../cmd/program/terminal.ts';
import { FileError } from '../../../src/files/read.ts';
import { KubeError, type KubeErrorCode } from '../../../src/kube/api/errors.ts';
import { neverAborted } from '../../support/never-aborted.ts';

/** A program with one subcommand. */
function only(work: (invocation: Invocation) => Promise<number>, settings: Subcommand['settings'] = 'agent') {
  const subcommand: Subcommand = {
    usage: '[FLAGS] THING',
    description: 'Does a `thing`.',
    settings,
    flags: { often: toggle('Does it often.', { short: 'o' }) },
    run: work,
  };
  return { thing: { summary: 'does it', load: () => Promise.resolve({ subcommand }) } };
}

t.test('help and version', async (t) => {
  for (const args of [['--help'], ['-h'], ['help']]) {
    const { code, out, err } = await run(args);
    t.strictSame([code, err], [0, '']);
    t.match(out, /^Usage: archwright SUBCOMMAND/);
    for (const name of Object.keys(subcommands)) t.match(out, new RegExp(`^  ${name} `, 'm'));
  }
  like(t, await run(['--version']), { code: 0, out: /^archwright \d+\.\d+\.\d+ \(\w+\)\n$/, err: '' });
});

t.test('`--help` of a subcommand, at any position', async (t) => {
  for (const args of [
    ['thing', '--help'],
    ['thing', '-h'],
    ['thing', 'x', '--listen', ':1', '--help'],
  ]) {
    const { code, out } = await run(args, { subcommands: only(() => Promise.reject(new Error('was run'))) });
    t.equal(code, 0);
    t.match(out, /^Usage: archwright thing \[FLAGS\] THING\n\nDoes a thing\.\n/);
    t.match(out, '-o, --often\n      Does it often.');
    t.match(
      out,
      /^Settings, which are flags too \(`archwright help thing` describes them\):\n(?: .*\n)* .*--listen/m,
    );
    t.notMatch(out, 'Default: "127.0.0.1:8443".');
    t.notMatch(out, '--inline-budget', 'a setting of another part');
    for (const line of out.split('\n')) t.ok(line.length <= 100, line);
  }
});

t.test('`help SUBCOMMAND` describes every setting', async (t) => {
  const { code, out } = await run(['help', 'thing'], { subcommands: only(() => Promise.resolve(1)) });
  t.equal(code, 0);
  t.match(out, '--listen ADDRESS:PORT');
  t.match(out, 'Default: "127.0.0.1:8443".');
  t.notMatch(out, '--inline-budget', 'a setting of another part');
  for (const line of out.split('\n')) t.ok(line.length <= 100, line);
  like(t, await run(['help', 'exlpain']), {
    code: 2,
    err: /unknown subcommand exlpain; did you mean explain/,
  });
});

t.test('every subcommand has help of less than 60 lines', async (t) => {
  for (const name of Object.keys(subcommands)) {
    const { code, out } = await run([name, '--help']);
    t.equal(code, 0, name);
    t.match(out, new RegExp(`^Usage: archwright ${name} `), name);
    t.ok(out.split('\n').length < 60, `${name}: ${out.split('\n').length} lines`);
  }
});

t.test('a subcommand gets its arguments, flags, settings and stop signal', async (t) => {
  let got: Invocation | undefined;
  const given = only((invocation) => {
    got = invocation;
    return Promise.resolve(7);
  });
  const env = { ARCHWRIGHT_CONFIG: '/env.toml' };
  const stop = AbortSignal.abort('SIGTERM');
  const { code } = await run(['thing', 'a', '--often', '--listen', ':1', 'b'], {
    subcommands: given,
    env,
    stop,
  });
  t.equal(code, 7);
  like(t, got, {
    positionals: ['a', 'b'],
    sources: { file: '/env.toml', env, flags: { listen: ':1' }, part: 'agent' },
    stop: { aborted: true, reason: 'SIGTERM' },
  });
  t.strictSame(got?.flags, { often: true });
  await run(['thing', '--config', '/flag.toml'], { subcommands: given, env });
  t.equal(got?.sources.file, '/flag.toml');
});

t.test('errors are one line', async (t) => {
  const fails = (error: unknown) =>
    only(async () => {
      throw error;
    });
  for (const [error, line] of [
    [new Error('the disk is gone\nwith details'), 'the disk is gone'],
    ['a text', 'a text'],
  ] as const) {
    const ended = { code: 1, out: '', err: `archwright: ${line}\n` };
    t.strictSame(await run(['thing'], { subcommands: fails(error) }), ended);
  }
});

t.test('a secret in an error is masked', async (t) => {
  secret('told-in-confidence');
  const message = 'wrong password told-in-confidence';
  const errors = [new Error(message), new UsageError(message), new FileError('missing', 'a', message)];
  for (const error of errors) {
    const failing = only(() => Promise.reject(error));
    const { err } = await run(['thing', '--log-level=debug'], { subcommands: failing });
    t.match(err, 'wrong password [secret]', error.name);
    t.notMatch(err, 'told-in-confidence', error.name);
  }
});

t.test('under the log level debug, an error has a stack', async (t) => {
  const failing = only(() => Promise.reject(new Error('gone')));
  const cases: [string[], Record<string, string>, boolean][] = [
    [['thing', '--log-level', 'debug'], {}, true],
    [['thing', '--log-level=trace'], {}, true],
    [['thing'], { ARCHWRIGHT_LOG_LEVEL: 'debug' }, true],
    [['thing', '--log-level', 'info'], { ARCHWRIGHT_LOG_LEVEL: 'debug' }, false],
    [['thing', '--log-level=warn'], {}, false],
    [['thing'], {}, false],
  ];
  for (const [args, env, expected] of cases) {
    const { err } = await run(args, { env, subcommands: failing });
    t.equal(err.includes('main.test.ts'), expected, `${args.join(' ')} ${JSON.stringify(env)}`);
  }
});

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
  const columns: readonly Column<number>[] = [
    ['N', (row) => row],
    ['B', () => undefined],
  ];
  t.equal(tableOf(columns, [0], '> '), '> N  B\n> 0  -\n');
});

/** Shows a result after an error. */
async function shown(watch: boolean, code: KubeErrorCode, output = 'table') {
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
    return { document: {}, text: 'all is well\n', code: 0, isOver: true };
  };
  return { code: await showAgain({ flags: { watch, output }, io, stop: neverAborted }, look), text };
}

t.test('with --watch it goes on while the API server does not answer', async (t) => {
  const clear = '\u001B[H\u001B[2J';
  t.strictSame(await shown(true, 'unavailable'), {
    code: 0,
    text: `${clear}the cluster does not answer: no answer\n${clear}all is well\n`,
  });
  t.match((await shown(true, 'unavailable', 'json')).text, '{\n  "error": "no answer"\n}\n');
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
