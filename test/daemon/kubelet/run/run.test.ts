import { getEventListeners } from 'node:events';
import { existsSync, readFileSync, chmodSync, copyFileSync, mkdirSync, symlinkSync } from 'node:fs';
import { join, dirname } from 'node:path';
import { execFileSync } from 'node:child_process';
import t, { type Test } from 'tap';
import {
  hostCommand,
  defaultRunLimits,
  runProgram,
  type RunLimits,
  describeStderr,
} from '../../../../daemon/kubelet/run/run.ts';
import { isAlive, writePlugin, openSource, configText, execV1 } from '../support.ts';
import { until } from '../../../support/until.ts';
import { secret } from '../../../../src/telemetry/secret.ts';
import { like } from '../../../support/like.ts';

const stat = (pid: number): string => readFileSync(`/proc/${pid}/stat`, 'utf8');

function plugin(t: Test, body: string, interpreter?: string) {
  const dir = t.testdir();
  const file = join(dir, 'plugin');
  const pidFile = join(dir, 'pids');
  writePlugin(file, body, interpreter);
  return {
    /** The process ids that the plugin writes to its first argument. */
    pids: async (): Promise<number[]> => {
      await until(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8').endsWith('\n'));
      return readFileSync(pidFile, 'utf8').trim().split(/\s+/).map(Number);
    },
    run: (
      limits: Partial<RunLimits> = {},
      more: { stdin?: string; args?: string[]; signal?: AbortSignal } = {},
    ) =>
      runProgram(
        {
          command: { file, args: more.args ?? [pidFile] },
          env: { PATH: '/usr/bin:/bin' },
          stdin: more.stdin ?? '',
          limits: { ...defaultRunLimits, ...limits },
        },
        more.signal,
      ),
  };
}

t.test('a program gets its request and arguments, and its whole output is returned', async (t) => {
  const { run } = plugin(
    t,
    `let text = ''; process.stdin.on('data', (chunk) => (text += chunk));
     process.stdin.on('end', () => console.log(JSON.stringify([process.argv.slice(2), text, process.cwd(), 'x'.repeat(500000)])));`,
  );
  const { signal } = new AbortController();
  const stdout = await run({}, { stdin: 'request\n', args: ['--a', '$(b)', '; c', ''], signal });
  t.equal(getEventListeners(signal, 'abort').length, 0);
  t.strictSame(JSON.parse(stdout.toString()), [
    ['--a', '$(b)', '; c', ''],
    'request\n',
    '/',
    'x'.repeat(500_000),
  ]);
});

t.test('a program may ignore its request', async (t) => {
  const { run } = plugin(t, 'exec 0<&-\necho done', '/bin/sh');
  t.equal((await run({}, { stdin: 'x'.repeat(1_000_000) })).toString(), 'done\n');
});

t.test('a failure reports the exit status and standard error', async (t) => {
  const cases: [string, RegExp][] = [
    ['echo "no such region" >&2; exit 3', /^exit status 3: no such region$/],
    ['exit 1', /^exit status 1$/],
    ['exit 125', /^exit status 125$/],
    ['kill -TERM $$', /^signal: SIGTERM$/],
    [String.raw`printf 'a\033[31mred\007\nb\r\0c' >&2; exit 2`, /^exit status 2: ared b c$/],
  ];
  for (const [body, message] of cases) {
    const { run } = plugin(t, body, '/bin/sh');
    await t.rejects(run(), { code: 'failed', message }, body);
  }
});

t.test('standard error is limited', async (t) => {
  const { run } = plugin(t, `process.stderr.write('e'.repeat(5_000_000), () => process.exit(4));`);
  const error: unknown = await run().catch((error: unknown) => error);
  like(t, error, { code: 'failed', message: /^exit status 4: e+…$/ });
  t.ok(error instanceof Error && error.message.length < 1100);
});

t.test('a hanging program that ignores SIGTERM is killed with its children', async (t) => {
  const { pids, run } = plugin(
    t,
    `trap '' TERM INT HUP\nsh -c "trap '' TERM; while :; do sleep 60; done" &\necho $$ $! > "$1"\nwhile :; do sleep 60; done`,
    '/bin/sh',
  );
  const began = performance.now();
  const running = run({ timeoutMs: 3000 });
  const started = await pids();
  t.equal(started.length, 2);
  await t.rejects(running, { code: 'timeout', message: /did not end within 3 seconds/ });
  t.ok(performance.now() - began < 30_000);
  await until(() => started.every((pid) => !isAlive(pid, stat)), 'no process is left');
});

t.test('a child that holds the pipe open is killed', async (t) => {
  const { pids, run } = plugin(t, `echo answer\nsleep 600 &\necho $! > "$1"`, '/bin/sh');
  const stdout = await run({ drainMs: 100 });
  t.equal(stdout.toString(), 'answer\n');
  const [child = 0] = await pids();
  await until(() => !isAlive(child, stat), 'the child is killed');
});

t.test('a run ends although a child in another process group continues', async (t) => {
  const { pids, run } = plugin(
    t,
    `const { spawn } = process.getBuiltinModule('node:child_process');
     const child = spawn('sleep', ['600'], { detached: true, stdio: 'inherit' });
     process.getBuiltinModule('node:fs').writeFileSync(process.argv[2], child.pid + '\\n');
     process.stdout.write('answer', () => process.exit(0));`,
  );
  t.equal((await run({ drainMs: 100 })).toString(), 'answer');
  const [child = 0] = await pids();
  t.teardown(() => process.kill(child, 'SIGKILL'));
});

t.test('a program that prints 100 MB is killed at the limit', async (t) => {
  const { run } = plugin(
    t,
    `const chunk = 'x'.repeat(1_000_000); let left = 100;
     const more = () => { while (left-- > 0) if (!process.stdout.write(chunk)) return process.stdout.once('drain', more); };
     more();`,
  );
  const before = process.memoryUsage().rss;
  await t.rejects(run(), { code: 'too-much-output', message: /wrote more than 1048576 bytes/ });
  t.ok(process.memoryUsage().rss - before < 64 * 1_048_576);
});

t.test('output of exactly the limit is read', async (t) => {
  const { run } = plugin(t, `process.stdout.write('x'.repeat(1000))`);
  t.equal((await run({ maxStdoutBytes: 1000 })).length, 1000);
  await t.rejects(run({ maxStdoutBytes: 999 }), { code: 'too-much-output' });
});

t.test('an abort kills a running program, and no other starts', async (t) => {
  const { pids, run } = plugin(t, 'echo $$ > "$1"\nwhile :; do sleep 60; done', '/bin/sh');
  const stop = new AbortController();
  const running = run({}, { signal: stop.signal });
  const [pid = 0] = await pids();
  stop.abort();
  await t.rejects(running, { code: 'stopped' });
  await until(() => !isAlive(pid, stat));
  await t.rejects(run({}, { signal: stop.signal }), { code: 'stopped' });
});

t.test('a program that cannot start is an error', async (t) => {
  const dir = t.testdir({ text: 'no program' });
  const start = (file: string, args: string[] = []) =>
    runProgram({ command: { file, args }, env: {}, stdin: '' });
  const code = 'not-started';
  await t.rejects(start(join(dir, 'missing')), { code, message: /missing cannot be started: ENOENT/ });
  await t.rejects(start(join(dir, 'text')), { code, message: /EACCES/ });
  await t.rejects(start('/bin/sh', ['a\0b']), { code, message: /cannot be started/ });
});

t.test('chroot is used only for another root', async (t) => {
  t.strictSame(hostCommand('/', '/bin/p', ['-a']), { file: '/bin/p', args: ['-a'] });
  t.strictSame(hostCommand('//', '/bin/p'), { file: '/bin/p', args: [] });
  const { file, args, inRoot } = hostCommand('/host/', '/bin/p', ['-a']);
  t.match(file, /\/chroot$/);
  t.strictSame(args, ['/host', '/bin/p', '-a']);
  t.equal(inRoot, '/host');
});

t.test('standard error is reported as one line of printable text', async (t) => {
  const cases: [string, string][] = [
    ['', ''],
    ['  no region\n\n', 'no region'],
    ['a\r\nb\tc\0d', 'a b c d'],
    ['\u001b[31mred\u001b[0m \u001b]0;title\u0007', 'red ]0;title'],
    ['grüße 日本 ✓', 'grüße 日本 ✓'],
    ['\u202eright to left\u2028', 'right to left'],
  ];
  for (const [written, expected] of cases) t.equal(describeStderr(Buffer.from(written)), expected);
  t.equal(describeStderr(Buffer.from([0x61, 0xff, 0x62])), 'a\ufffdb');
  t.equal(describeStderr(Buffer.from('word '.repeat(1000))).length, 1001);
});

t.test('texts that look like credentials are removed from standard error', async (t) => {
  secret('known to us');
  const cases: [string, string][] = [
    ['it is known to us', 'it is [secret]'],
    ['password=hunter2 wrong', 'password=[secret] wrong'],
    ['{"username":"u","password":"hunter 2","x":1}', '{"username":"u","password":[secret],"x":1}'],
    ["db_password: 'hunter2'", 'db_password: [secret]'],
    ['client-secret=hunter2&x', 'client-secret=[secret]'],
    ['AWS_SECRET_ACCESS_KEY = hunter2', 'AWS_SECRET_ACCESS_KEY = [secret]'],
    ['Authorization: Basic dTpw', 'Authorization: [secret]'],
    ['sent Bearer abc.def', 'sent [secret]'],
    ['GET https://user:hunter2@host/x', 'GET https://[secret]host/x'],
    ['token eyJhbGciOi.eyJzdWIi.c2ln ended', 'token [secret] ended'],
    ['key AbCdEfGhIjKlMnOpQr1234 ended', 'key [secret] ended'],
    [
      'open /usr/libexec/kubernetes/kubelet-plugins/x86-64/a: no such file',
      'open /usr/libexec/kubernetes/kubelet-plugins/x86-64/a: no such file',
    ],
    ['dial tcp 169.254.169.254:80: i/o timeout', 'dial tcp 169.254.169.254:80: i/o timeout'],
  ];
  for (const [written, expected] of cases) t.equal(describeStderr(Buffer.from(written)), expected, written);
});

const isRoot = process.getuid?.() === 0;

/** A root with a shell, its libraries and one plugin, which runs with its own loader, libraries and programs. */
function hostRoot(t: Test, body: string): string {
  const root = t.testdir({
    etc: { 'provider.json': configText({ name: 'plugin', args: ['--flag', '-x'] }) },
    opt: { bin: {} },
  });
  const shell = '/bin/sh';
  const libraries = execFileSync('ldd', [shell], { encoding: 'utf8' }).match(/\/[^\s)]+/g) ?? [];
  for (const path of [shell, ...libraries]) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    copyFileSync(path, join(root, path));
  }
  chmodSync(join(root, 'opt/bin'), 0o755);
  writePlugin(join(root, 'opt/bin/real'), body, shell);
  mkdirSync(join(root, 'usr/libexec'), { recursive: true });
  symlinkSync('/opt/bin', join(root, 'usr/libexec/plugins'));
  symlinkSync('/opt/bin/real', join(root, 'opt/bin/plugin'));
  return root;
}

const answer = (password: string): string =>
  `printf '%s' '{"kind":"CredentialProviderResponse","apiVersion":"${execV1}","cacheKeyType":"Image",` +
  `"auth":{"registry.example":{"username":"u","password":"'"${password}"'"}}}'`;

const paths = { config: '/etc/provider.json', binDir: '/usr/libexec/plugins' };

t.test('a plugin runs in the root of the node by its configured path', async (t) => {
  const root = hostRoot(
    t,
    answer('$0 $* $PWD $HOME $(test -e /opt/bin/real && echo own)$(test -e /work && echo ours)'),
  );
  const { found, problems } = await openSource(t, { hostRoot: root, ...paths });
  if (isRoot) {
    t.strictSame(await found('registry.example/a'), [
      'u:/usr/libexec/plugins/plugin --flag -x / /root own (plugin plugin, registry.example)',
    ]);
    t.strictSame(problems(), []);
  } else {
    t.strictSame(await found('registry.example/a'), []);
    like(t, problems(), [/exit status 125: .*Operation not permitted.*takes the capability SYS_CHROOT/]);
  }
});

t.test('a missing interpreter is reported', async (t) => {
  const root = hostRoot(t, 'exit 0');
  writePlugin(join(root, 'opt/bin/real'), 'print 1', '/usr/bin/perl');
  const { found, problems } = await openSource(t, { hostRoot: root, ...paths });
  t.strictSame(await found('registry.example/a'), []);
  like(t, problems(), [isRoot ? /exit status 127: .*No such file/ : /exit status 125/]);
});
