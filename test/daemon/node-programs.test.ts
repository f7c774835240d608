import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { containerdProgram } from '../../daemon/containerd/config/rules.ts';
import { createVersionFinder } from '../../daemon/node-programs.ts';
import { like } from '../support/like.ts';

/** Programs in a directory. The node's root is `/`, so the tests need no chroot. */
function finder(t: Test, scripts: Readonly<Record<string, string>>) {
  const dir = t.testdir();
  chmodSync(dir, 0o755);
  const write = (name: string, text: string) => {
    writeFileSync(join(dir, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  };
  for (const [name, text] of Object.entries(scripts)) write(name, text);
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const made = createVersionFinder(containerdProgram, '/', stop.signal);
  const path = (name: string) => join(dir, name);
  return { find: (...names: string[]) => made(names.map(path)), write, path };
}

t.test('versions are read from the output of programs', async (t) => {
  const { find } = finder(t, {
    upstream:
      'echo "containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4e490e9fbdc236c0e811ccaba3376"',
    debian: 'echo "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1"',
    k3s: 'echo "containerd github.com/k3s-io/containerd v2.1.5-k3s1 abc"',
  });
  t.strictSame(await find('upstream'), { version: 'v2.1.4' });
  t.strictSame(await find('debian'), { version: '1.6.20~ds1' });
  t.strictSame(await find('k3s'), { version: 'v2.1.5-k3s1' });
  t.strictSame(await find('none', 'k3s', 'debian'), { version: 'v2.1.5-k3s1' }, 'the first existing program');
  t.strictSame(await find('none'), {});
});

t.test('the program gets --version and none of the agent’s environment', async (t) => {
  process.env['ARCHWRIGHT_TEST_SECRET'] = 'x';
  t.teardown(() => delete process.env['ARCHWRIGHT_TEST_SECRET']);
  const { find } = finder(t, {
    p: 'test "$*" = --version && test -z "$ARCHWRIGHT_TEST_SECRET" && echo "containerd x v1.7.0 y"',
  });
  t.strictSame(await find('p'), { version: 'v1.7.0' });
});

t.test('programs that fail, print no version or must not run give no version', async (t) => {
  const { find, path } = finder(t, {
    silent: 'true',
    other: 'echo "runc version 1.1.5"',
    garbage: 'echo "containerd x devel y"',
    failing: 'exit 3',
    loud: 'yes containerd',
    writable: 'echo "containerd x v1.7.0 y"',
  });
  chmodSync(path('writable'), 0o777);
  for (const name of ['silent', 'other', 'garbage', 'failing', 'loud', 'writable']) {
    const { version, problem } = await find(name);
    t.equal(version, undefined, name);
    like(t, problem, { origin: path(name), message: /set containerdVersion$/ }, name);
  }
});

t.test('a program runs once, and again after it was replaced', async (t) => {
  const { find, write, path } = finder(t, {});
  write('p', `echo x >>${path('runs')}; echo "containerd x v1.0.$(wc -l <${path('runs')}) y"`);
  t.strictSame(await find('p'), { version: 'v1.0.1' });
  t.strictSame(await find('p'), { version: 'v1.0.1' });
  write('q', 'echo "containerd x v3.0.0 y"');
  symlinkSync(path('q'), path('link'));
  t.strictSame(await find('link'), { version: 'v3.0.0' });
  write('q', 'echo "containerd x v3.0.1 y" # longer');
  t.strictSame(await find('link'), { version: 'v3.0.1' });
});
