import t, { type Test } from 'tap';
import { loadCrioConf } from '../../../daemon/crio/crio-conf.ts';
import { NodeFiles } from '../../../daemon/node-files.ts';
import { like } from '../../support/like.ts';
import { writeFiles } from '../../support/write-files.ts';

const main = '/etc/crio/crio.conf';
const image = (...lines: readonly string[]): string => ['[crio.image]', ...lines, ''].join('\n');
const auth = (path: string): string => image(`global_auth_file = "${path}"`);

function read(t: Test, files: Readonly<Record<string, string>>) {
  const root = t.testdir();
  writeFiles(root, files);
  return loadCrioConf(new NodeFiles(root));
}

t.test('files in directories below crio.conf.d count too', async (t) => {
  const found = await read(t, {
    [main]: auth('/main'),
    '/etc/crio/crio.conf.d/a/x.conf.bak': auth('/a'),
    '/etc/crio/crio.conf.d/z': image('signature_policy = "/p"'),
  });
  like(t, found, { globalAuthFile: '/a', signaturePolicy: '/p', shortNameMode: undefined });
  t.strictSame(found.files, [main, '/etc/crio/crio.conf.d/a/x.conf.bak', '/etc/crio/crio.conf.d/z']);
});

t.test('flags and variables of the service override the files', async (t) => {
  const found = await read(t, {
    '/usr/lib/systemd/system/crio.service':
      '[Service]\nEnvironmentFile=-/etc/sysconfig/crio\nEnvironment=XDG_RUNTIME_DIR=/run/user/0\nExecStart=/usr/bin/crio $CRIO_CONFIG_OPTIONS --global-auth-file=/flag\n',
    '/etc/sysconfig/crio':
      'CRIO_CONFIG_OPTIONS="-c /etc/other.conf --config-dir /etc/other.d --registries-conf /r.conf"\nCONTAINER_GLOBAL_AUTH_FILE=/variable\nCONTAINER_SIGNATURE_POLICY=/policy\nHOME=/home/crio\n',
    '/etc/other.conf': image('short_name_mode = "disabled"'),
    '/etc/other.d/x': auth('/file'),
    [main]: auth('/not read'),
  });
  like(t, found, {
    files: ['/etc/other.conf', '/etc/other.d/x'],
    globalAuthFile: '/flag',
    signaturePolicy: '/policy',
    shortNameMode: 'disabled',
    registriesConf: '/r.conf',
    home: '/home/crio',
    environment: { XDG_RUNTIME_DIR: '/run/user/0' },
  });
});

t.test('files with which CRI-O does not start', async (t) => {
  for (const text of ['[[crio]]\n', 'crio = 1\n']) await t.rejects(read(t, { [main]: text }), /crio\.conf: /);
  const service = '[Service]\nEnvironment=CONTAINER_CONFIG=/none.conf\n';
  const named = { '/etc/systemd/system/crio.service': service };
  await t.rejects(read(t, named), /none.conf: there is no such file/);
});
