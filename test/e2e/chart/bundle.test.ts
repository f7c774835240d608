/** Bundled and unbundled, the program behaves alike. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import t from 'tap';

/** What both are asked, and what it may differ in. */
const cases: readonly (readonly string[])[] = [
  ['--help'],
  ['webhook', '--help'],
  ['agent', '--help'],
  ['controller', '--help'],
  ['clean', '--help'],
  ['probe', '--timeout', 'soon'],
  ['nonsense'],
  ['webhook', '--nonsense'],
  ['config', 'print'],
  ['config', 'check', 'examples/config/several-architectures.toml'],
  ['config', 'check', 'package.json'],
  ['explain', '-f', 'examples/pods/own-node-selector.yaml'],
  ['inspect', 'not a reference'],
  ['completion', 'bash'],
  ['webhook'],
  ['agent', '--tls-dir', '/nowhere'],
];

interface Answer {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function run(entry: string, args: readonly string[]): Answer {
  const { status, stdout, stderr } = spawnSync(process.execPath, [entry, ...args], {
    encoding: 'utf8',
    timeout: 60_000,
    env: { PATH: process.env['PATH'], HOME: '/nonexistent' },
  });
  return { code: status, out: timeless(stdout), err: timeless(stderr) };
}

function timeless(text: string): string {
  return text.replaceAll(/"time":"[^"]*"/g, '"time":""');
}

t.test('the bundle and the source answer alike', async (t) => {
  execFileSync(process.execPath, ['scripts/bundle.ts'], { stdio: ['ignore', 'ignore', 'inherit'] });
  t.ok(existsSync('dist/archwright.mjs'));
  for (const args of cases)
    t.same(run('dist/archwright.mjs', args), run('cmd/archwright.ts', args), args.join(' '));
  t.match(run('dist/archwright.mjs', ['--version']).out, /^archwright \d+\.\d+\.\d+ \([0-9a-f]{12,40}\)\n$/);
});
