/** Runs the demo as a child process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { logins } from '../../../examples/demo/registries.ts';
import { compileCache } from '../../support/compile-cache.ts';

const main = fileURLToPath(new URL('../../../examples/demo/main.ts', import.meta.url));
const pods = fileURLToPath(new URL('../../../examples/pods/', import.meta.url));

/** Files of the examples. */
export const examples = readdirSync(pods).filter((name) => name.endsWith('.yaml'));

/** Secrets of the demo. None may appear in its output. */
const secrets = [
  ...Object.values(logins).flatMap(({ username, password }) => [
    password,
    Buffer.from(password).toString('base64'),
    Buffer.from(`${username}:${password}`).toString('base64'),
  ]),
  // The test registry's tokens and the kubeconfig's.
  'token-issuer',
  'of-the-test',
];

export type Demo = ReturnType<typeof start>;

/** Starts it. Its temporary files are in a directory of the test. */
export function start(t: Test, args: string[] = [], more: Record<string, string> = {}) {
  /** The parent of its temporary directory. */
  const tmp = t.testdir({});
  // Without what tap sets.
  const env: NodeJS.ProcessEnv = { ...process.env, ...compileCache };
  for (const name of ['FORCE_COLOR', 'NODE_OPTIONS']) delete env[name];
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...env, ...more, TMPDIR: tmp },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGTERM'));
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, out, err }));
  /** Waits for output. Fails if the demo ends without it. */
  async function until(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(out);
      if (found) return found;
      const more = once(child.stdout, 'data').then(() => true);
      if (!(await Promise.race([more, ended.then(() => false)]))) {
        throw new Error(`the demo ended without ${pattern}: ${err}`);
      }
    }
  }
  return { child, tmp, text: () => out, until, ended };
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Three children ran, and no child and no file is left. */
export function leavesNothing(t: Test, demo: Demo): void {
  const pids = [...demo.text().matchAll(/process (\d+)/g)].map(([, pid]) => Number(pid));
  t.equal(pids.length, 3, 'two agents and a webhook were started');
  t.strictSame(pids.filter(runs), [], 'no child is left');
  t.strictSame(readdirSync(demo.tmp), [], 'no file is left');
}

export function tellsNoSecret(t: Test, text: string): void {
  t.strictSame(
    secrets.filter((secret) => text.includes(secret)),
    [],
    'no secret in the output',
  );
}
