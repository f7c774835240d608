import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { fishScript, vocabularyOf, zshScript } from '../../../cmd/completion.ts';
import { subcommands } from '../../../cmd/program/subcommands.ts';
import { run } from '../run.ts';

/** Bash's suggestions for the last word of a line. */
function complete(script: string, ...words: string[]): string[] {
  const line = ['archwright', ...words].map((word) => `'${word}'`).join(' ');
  const commands = `${script}\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length}; _archwright; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', commands], {
    encoding: 'utf8',
    timeout: 10_000,
  });
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
  const words = (...given: string[]) =>
    spawnSync('sh', ['-c', script, 'sh', ...given], { encoding: 'utf8' }).stdout;
  t.equal(words('it', 'it'), 'a\nb\n');
  t.match(words('', 'archwright'), "it\tisn't \\ easy\n");
});

t.test('kubectl completes subcommands, words and flags', async (t) => {
  const { out } = await run(['completion', 'kubectl']);
  const file = join(t.testdir(), 'kubectl_complete-archwright');
  writeFileSync(file, out, { mode: 0o755 });
  const completeKubectl = (...words: string[]): string[] =>
    spawnSync(file, words, { encoding: 'utf8', timeout: 10_000 }).stdout.trimEnd().split('\n');
  t.strictSame(completeKubectl('explai'), ['explain', ':0']);
  t.strictSame(completeKubectl('explain', '$(false)*'), [':0'], 'input is not executed');
  t.strictSame(completeKubectl(''), [...Object.keys(subcommands), '--help', '--version', ':0']);
  t.strictSame(completeKubectl(), [...Object.keys(subcommands), '--help', '--version', ':0']);
});
