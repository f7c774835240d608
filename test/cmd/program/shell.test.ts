/** What a shell sees of the program: its launcher, output into pipes, and completion. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { fishScript, vocabularyOf, zshScript } from '../../../cmd/completion.ts';
import { subcommands } from '../../../cmd/program/subcommands.ts';
import { run } from '../run.ts';
import { childEnv, directory } from '../world.ts';
import { like } from '../../support/like.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const installed = join(root, 'node_modules/node/bin/node');

/** Without variables of the test run such as `ARCHWRIGHT_EXHAUSTIVE`, which would be unknown settings. */
function start(program: string, args: string[], cwd = root) {
  return spawnSync(program, args, { cwd, env: childEnv, timeout: 30_000, encoding: 'utf8' });
}

/** A Node that cannot run TypeScript, if the machine has one. */
const old = ['/usr/bin/node', '/usr/local/bin/node'].find(
  (path) => existsSync(path) && Number(/^v(\d+)/.exec(start(path, ['--version']).stdout)?.[1]) < 22,
);

t.test('it starts the program', async (t) => {
  const launcher = join(root, 'cmd/archwright.js');
  const file = join(t.testdir({ 'a.toml': 'listen = ":1"\n' }), 'a.toml');
  for (const node of old === undefined ? [process.execPath] : [process.execPath, old]) {
    const checked = start(node, [launcher, 'config', 'check', file], '/');
    like(t, checked, { status: 0, stdout: /: valid, 1 of/, stderr: '' });
    like(t, start(node, [launcher, 'nothing']), { status: 2, stdout: '' });
  }
});

t.test('with an unsuitable Node, it says what to do', async (t) => {
  if (old === undefined) return t.comment('this machine has no old Node');
  // Outside of the clone, so that it finds no node_modules.
  const alone = join(directory(t), 'archwright.mjs');
  cpSync(join(root, 'cmd/archwright.js'), alone);
  like(t, start(old, [alone]), { status: 1, stderr: /is too old; use Node 22\.18 or newer/ });
});

t.test('output into a closed pipe is no failure', async (t) => {
  const command = `"${installed}" cmd/archwright.ts config --help | head -n 1`;
  like(t, start('bash', ['-o', 'pipefail', '-c', command]), { status: 0, stdout: /^Usage/, stderr: '' });
});

t.test('long output is complete in a pipe', async (t) => {
  const command = `"${installed}" cmd/archwright.ts config print -o json | cat`;
  const { status, stdout, stderr } = start('bash', ['-o', 'pipefail', '-c', command]);
  t.strictSame([status, stderr], [0, '']);
  t.doesNotThrow(() => JSON.parse(stdout) as unknown);
});

/** Bash's suggestions for the last word of a line. */
function complete(script: string, ...words: string[]): string[] {
  const line = ['archwright', ...words].map((word) => `'${word}'`).join(' ');
  const commands = `${script}\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length}; _archwright; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, status } = start('bash', ['--norc', '-c', commands]);
  if (status !== 0) throw new Error(stderr);
  return stdout.split('\n').filter((word) => word !== '');
}

t.test('bash completes subcommands, words and flags', async (t) => {
  const { code, out, err } = await run(['completion', 'bash']);
  t.equal(code, 0);
  t.equal(err, '');
  const cases: [words: string[], offered: string[]][] = [
    [['explai'], ['explain']],
    [['--v'], ['--version']],
    [['config', 'ch'], ['check']],
    [['completion', 'z'], ['zsh']],
    [['explain', '--filen'], ['--filename']],
    [['webhook', '--inline'], ['--inline-budget']],
    [['webhook', '--no-tolerate'], ['--no-tolerate-architecture-taint']],
    [['webhook', '--kubelet-config'], []],
    [['nonsense', '--x'], []],
    [
      ['report', '--output', ''],
      ['table', 'csv', 'json'],
    ],
    [['report', '-o', 'c'], ['csv']],
    [['report', '--output', '=', 'j'], ['json']],
    [
      ['report', '--by', '='],
      ['workload', 'image'],
    ],
    [['webhook', '--log-level', 'd'], ['debug']],
    [['report', '--html', 'x'], []],
  ];
  for (const [words, offered] of cases) t.strictSame(complete(out, ...words), offered, words.join(' '));
  t.strictSame(complete(out, ''), [...Object.keys(subcommands), '--help', '--version']);
});

t.test('zsh has every subcommand and flag, with correct quotes', async (t) => {
  const vocabulary = await vocabularyOf(subcommands);
  const zsh = zshScript(vocabulary);
  for (const { word, flags } of vocabulary) {
    t.match(zsh, `    '${word} '*) printf `);
    t.strictSame(
      flags.filter(({ words }) => !zsh.includes(`'${words.at(-1)}\t`)),
      [],
      word,
    );
  }
  t.match(zsh, "'explain -o'|'explain --output') printf '%s\\n' 'table' 'json' 'yaml' ;;");
  const awkward = [{ word: 'it', help: "isn't \\ easy. Never", flags: [], words: [] }];
  t.match(zshScript(awkward), "'it\tisn'\\''t \\ easy'");
});

t.test('fish runs a script of a POSIX shell, quoted by the rules of fish', async (t) => {
  const awkward = [{ word: 'it', help: "isn't \\ easy. Never", flags: [], words: ['a', 'b'] }];
  const [, quoted = ''] = /sh -c '([^]*)' sh "\$words\[2\]"/.exec(fishScript(awkward)) ?? [];
  t.notMatch(quoted, /(?<!\\)(?:\\\\)*'/, 'no quote ends the text');
  const script = quoted.replaceAll(/\\(['\\])/g, '$1');
  const words = (...given: string[]) => start('sh', ['-c', script, 'sh', ...given]).stdout;
  t.equal(words('it', 'it'), 'a\nb\n');
  t.match(words('', 'archwright'), "it\tisn't \\ easy\n");
});

t.test('kubectl completes subcommands, words and flags', async (t) => {
  const { out } = await run(['completion', 'kubectl']);
  const file = join(t.testdir(), 'kubectl_complete-archwright');
  writeFileSync(file, out, { mode: 0o755 });
  const completeKubectl = (...words: string[]): string[] => start(file, words).stdout.trimEnd().split('\n');
  t.strictSame(completeKubectl('explai'), ['explain', ':0']);
  t.strictSame(completeKubectl('explain', '$(false)*'), [':0'], 'input is not executed');
  t.strictSame(completeKubectl(''), [...Object.keys(subcommands), '--help', '--version', ':0']);
  t.strictSame(completeKubectl(), [...Object.keys(subcommands), '--help', '--version', ':0']);
});
