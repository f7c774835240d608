/** With the node's root in a directory, plugins use its loader, libraries and programs. */
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { openSource, configText, execV1, writePlugin } from '../support.ts';
import { like } from '../../../support/like.ts';

const isRoot = process.getuid?.() === 0;

/** A root with a shell, its libraries and one plugin. */
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
