import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { childEnv } from '../world.ts';
import { like } from '../../support/like.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const installed = join(root, 'node_modules/node/bin/node');

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Without variables of the test run such as `ARCHWRIGHT_EXHAUSTIVE`, which would be unknown settings. */
async function start(program: string, args: string[], cwd = root): Promise<Ended> {
  const options = { cwd, env: childEnv, timeout: 30_000 };
  try {
    return { code: 0, ...(await promisify(execFile)(program, args, options)) };
  } catch (error) {
    return error as Ended;
  }
}

/** A Node that cannot run TypeScript, if the machine has one. */
async function oldNode(): Promise<string | undefined> {
  for (const path of ['/usr/bin/node', '/usr/local/bin/node']) {
    if (!existsSync(path)) continue;
    const { stdout } = await start(path, ['--version']);
    if (Number(/^v(\d+)/.exec(stdout)?.[1]) < 22) return path;
  }
  return undefined;
}

t.test('it starts the program', async (t) => {
  const launcher = join(root, 'cmd/archwright.js');
  const file = join(t.testdir({ 'a.toml': 'listen = ":1"\n' }), 'a.toml');
  const old = await oldNode();
  for (const node of old === undefined ? [process.execPath] : [process.execPath, old]) {
    like(t, await start(node, [launcher, 'config', 'check', file], '/'), {
      code: 0,
      stdout: /: valid, 1 of/,
      stderr: '',
    });
    like(t, await start(node, [launcher, 'nothing']), { code: 2, stdout: '' });
  }
});

t.test('with an unsuitable Node, it says what to do', async (t) => {
  const old = await oldNode();
  if (old === undefined) return t.comment('this machine has no old Node');
  // Outside of the clone, so that it finds no node_modules.
  const dir = mkdtempSync(join(tmpdir(), 'archwright-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
  cpSync(join(root, 'cmd/archwright.js'), join(dir, 'archwright.mjs'));
  like(t, await start(old, [join(dir, 'archwright.mjs')]), {
    code: 1,
    stderr: /is too old; use Node 22\.18 or newer/,
  });
});

t.test('output into a closed pipe is no failure', async (t) => {
  const command = `"${installed}" cmd/archwright.ts config --help | head -n 1`;
  like(t, await start('bash', ['-o', 'pipefail', '-c', command]), { code: 0, stdout: /^Usage/, stderr: '' });
});

t.test('long output is complete in a pipe', async (t) => {
  const command = `"${installed}" cmd/archwright.ts config print -o json | cat`;
  const { code, stdout, stderr } = await start('bash', ['-o', 'pipefail', '-c', command]);
  t.strictSame([code, stderr], [0, '']);
  t.doesNotThrow(() => JSON.parse(stdout) as unknown);
});
