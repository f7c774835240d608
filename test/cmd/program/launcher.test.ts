/** The launcher, and the program as a process that writes into pipes. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { childEnv } from '../world.ts';
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
  const dir = mkdtempSync(join(tmpdir(), 'archwright-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  cpSync(join(root, 'cmd/archwright.js'), join(dir, 'archwright.mjs'));
  like(t, start(old, [join(dir, 'archwright.mjs')]), {
    status: 1,
    stderr: /is too old; use Node 22\.18 or newer/,
  });
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
