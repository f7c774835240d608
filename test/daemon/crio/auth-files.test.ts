/**
 * The search for a credential, on a node whose files and helpers are real. Keys and credentials are held by
 * `npm run vectors` and the node suite of CRI-O.
 */
import { chmodSync, readFileSync, rmSync } from 'node:fs';
import t, { type Test } from 'tap';
import {
  authFilePaths,
  credentialIn,
  CredentialHelpers,
  parseAuthFile,
  loadAuthFiles,
} from '../../../daemon/crio/auth-files.ts';
import { defaultCrioConf, type CrioConf } from '../../../daemon/crio/crio-conf.ts';
import { NodeFiles } from '../../../daemon/node-files.ts';
import { ConfigFileError } from '../../../daemon/toml.ts';
import { DockerConfigError } from '../../../src/credentials/docker/docker-config.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { neverAborted } from '../../support/never-aborted.ts';
import { writeFiles } from '../../support/write-files.ts';

const config = (user: string, host = 'a.test'): string =>
  JSON.stringify({ auths: { [host]: { auth: Buffer.from(`${user}:p`).toString('base64') } } });

/** Paths are below the directory of the test, because a helper needs the shell of this machine. */
function node(t: Test, files: Readonly<Record<string, string>>, globalAuthFile?: string) {
  const root = t.testdir();
  writeFiles(root, files);
  for (const path of Object.keys(files)) if (path.startsWith('/bin/')) chmodSync(root + path, 0o755);
  const conf: CrioConf = {
    ...defaultCrioConf,
    globalAuthFile: globalAuthFile === undefined ? '' : root + globalAuthFile,
    home: `${root}/root`,
    environment: {
      PATH: `${root}/none:${root}/bin:/usr/bin:/bin`,
      OUT: `${root}/out`,
      XDG_RUNTIME_DIR: `${root}/run`,
    },
  };
  const clock = createFakeClock();
  const asked = new CredentialHelpers('/', neverAborted, clock);
  const find = async (repository: string, helpers?: readonly string[]): Promise<string> => {
    const authFiles = await loadAuthFiles(conf, helpers, new NodeFiles('/'));
    const found = await asked.credentialFor(repository, helpers, authFiles, conf.environment);
    if (found === undefined) return 'none';
    const { username, password, isIdentityToken } = found.credential;
    return `${isIdentityToken ? 'token' : username}:${reveal(password)} ${found.key} ${found.origin.replace(root, '')}`;
  };
  return { root, clock, find };
}

t.test('the first file with a credential counts', async (t) => {
  const files = {
    '/run/containers/auth.json': config('run', 'other.test'),
    '/root/.config/containers/auth.json': JSON.stringify({ auths: { 'a.test': {} } }),
    '/root/.docker/config.json': config('docker'),
    '/root/.dockercfg': JSON.stringify({ 'https://a.test/v1': { auth: 'bGVnYWN5OnA=' } }),
  };
  const { find, root } = node(t, files);
  t.equal(await find('a.test/x/y'), 'docker:p a.test /root/.docker/config.json');
  rmSync(`${root}/root/.docker/config.json`);
  t.equal(await find('a.test/x'), 'legacy:p https://a.test/v1 /root/.dockercfg');
  t.equal(await find('b.test/x'), 'none');
});

t.test('a named file is the only one', async (t) => {
  const { find, root } = node(t, { '/root/.docker/config.json': config('docker') }, '/global.json');
  t.equal(await find('a.test/x'), 'none', 'it may be missing');
  writeFiles(root, { '/global.json': config('global') });
  t.equal(await find('a.test/x'), 'global:p a.test /global.json');
});

t.test('variables of the process move the files', async (t) => {
  const paths = (environment: Readonly<Record<string, string>>) => [
    ...authFilePaths({ ...defaultCrioConf, environment }).keys(),
  ];
  t.strictSame(paths({}), [
    '/run/containers/0/auth.json',
    '/root/.config/containers/auth.json',
    '/root/.docker/config.json',
    '/root/.dockercfg',
  ]);
  t.strictSame(paths({ XDG_RUNTIME_DIR: '/r', XDG_CONFIG_HOME: '/c', DOCKER_CONFIG: '/d' }), [
    '/r/containers/auth.json',
    '/c/containers/auth.json',
    '/d/config.json',
    '/root/.dockercfg',
  ]);
});

t.test('a broken file fails every lookup that reaches it', async (t) => {
  const { find, root } = node(t, {
    '/run/containers/auth.json': config('run'),
    '/root/.docker/config.json': '',
  });
  t.equal(await find('a.test/x'), 'run:p a.test /run/containers/auth.json');
  await t.rejects(find('b.test/x'), /\.docker\/config\.json: is not valid JSON/);
  writeFiles(root, { '/run/containers/auth.json': '{"auths":{"a.test":{"auth":"Zm9vOmJhcg"}}}' });
  const error = await find('a.test/x').catch((caught: unknown) => caught);
  t.ok(error instanceof ConfigFileError, 'so does base64 without padding');
  t.notMatch(String(error), /Zm9v|foo/);
});

const helper = (answer: object): string =>
  `#!/bin/sh\necho "$1 $(cat)" >>"$OUT"\necho '${JSON.stringify({ ServerURL: '', ...answer })}'\n`;

t.test('a helper of a host is asked instead of the entries', async (t) => {
  const credHelpers = { 'a.test': 'h', 'b.test': 'no' };
  const document = { ...(JSON.parse(config('file')) as object), credHelpers };
  const files = {
    '/auth.json': JSON.stringify(document),
    '/bin/docker-credential-h': helper({ Username: 'ann', Secret: 's' }),
    '/bin/docker-credential-no': '#!/bin/sh\necho credentials not found in native keychain\nexit 1\n',
  };
  const { find, clock, root } = node(t, files, '/auth.json');
  t.equal(await find('a.test/x'), 'ann:s a.test docker-credential-h');
  t.equal(await find('a.test/y/z'), 'ann:s a.test docker-credential-h');
  t.equal(readFileSync(`${root}/out`, 'utf8'), 'get a.test\n', 'once a minute');
  t.equal(await find('b.test/x'), 'none');
  await clock.advance(60_000);
  await find('a.test/x');
  t.equal(readFileSync(`${root}/out`, 'utf8'), 'get a.test\nget a.test\n');
});

t.test('six runs of a helper at a time, for different hosts', async (t) => {
  const { find, root } = node(t, {
    '/running/.none': '',
    // Each run lasts until others could have started.
    '/bin/docker-credential-h': `#!/bin/sh
dir="$(dirname "$OUT")/running"
host=$(cat)
: >"$dir/$host"
sleep 0.5
ls "$dir" | wc -l >>"$OUT"
rm "$dir/$host"
echo '{"ServerURL": "", "Username": "ann", "Secret": "s"}'
`,
  });
  const hosts = Array.from({ length: 12 }, (_, index) => `h${index}.test`);
  const found = await Promise.all(hosts.map((host) => find(`${host}/x`, ['h'])));
  t.equal(found.length, 12);
  const running = readFileSync(`${root}/out`, 'utf8').trim().split('\n').map(Number);
  t.equal(running.length, 12);
  t.ok(Math.max(...running) <= 6, `${Math.max(...running)} at a time`);
});

t.test('helpers of registries.conf are asked in order', async (t) => {
  const files = {
    '/auth.json': config('file'),
    '/bin/docker-credential-token': helper({ Username: '<token>', Secret: 'id' }),
    '/bin/docker-credential-bad': '#!/bin/sh\necho boom\nexit 1\n',
  };
  const { find, root } = node(t, files, '/auth.json');
  t.equal(await find('a.test/x', ['token']), 'token:id a.test docker-credential-token');
  t.equal(await find('a.test/x', ['bad', 'containers-auth.json']), 'file:p a.test /auth.json');
  const message = /docker-credential-bad: no credential for b\.test/;
  await t.rejects(find('b.test/x', ['bad', 'containers-auth.json']), message);
  t.equal(await find('a.test/x', []), 'file:p a.test /auth.json', 'an empty list is none');
  await t.rejects(find('a.test/x', ['../sh']), /not the name of a credential helper/);
  await t.rejects(find('a.test/x', ['absent']), /did not exist/);
  chmodSync(`${root}/bin`, 0o777);
  await t.rejects(find('c.test/x', ['token']), /can be written by others/);
});

const parse = (text: string) => parseAuthFile(Buffer.from(text), 'config.json');

t.test('documents as Go reads them', async (t) => {
  t.equal(parse('{"auths":null,"credsStore":1}').entries.size, 0);
  t.strictSame([...parse('{"credHelpers":{"a.test":"h"}}').helpers], [['a.test', 'h']]);
  t.strictSame([...parse('{"auths":{"a":{}},"Auths":{"b":null}}').entries.keys()], ['a', 'b']);
  for (const text of ['', 'x', '[]', '{"auths":[]}', '{"auths":{"a":{"auth":1}}}', '{"credHelpers":{"a":1}}'])
    t.throws(() => parse(text), DockerConfigError, text);
});

t.test('an entry of two empty texts is anonymous', async (t) => {
  const file = parse(`{"auths":{"a.test":{"auth":"${Buffer.from(':').toString('base64')}"}}}`);
  t.equal(credentialIn(file, 'a.test/x'), undefined);
});
