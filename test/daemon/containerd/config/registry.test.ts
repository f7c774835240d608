import t from 'tap';
import {
  effectiveConfigPath,
  readRegistry,
  usesLocalPull,
  validateRegistry,
  parseAuth,
} from '../../../../daemon/containerd/config/registry.ts';
import { mirrorEndpoints, mirrorHosts } from '../../../../daemon/containerd/endpoint.ts';
import { rulesFor, parseVersion, programsFor } from '../../../../daemon/containerd/config/rules.ts';
import { parseTable } from '../../../../daemon/toml.ts';
import { reveal, secret } from '../../../../src/telemetry/secret.ts';
import { like } from '../../../support/like.ts';

const read = (text: string, version?: string) => readRegistry(parseTable(text), rulesFor(version));
const mistyped = { name: 'InvalidConfig', message: / must be / };

t.test('config_path has defaults', async (t) => {
  const path = (text: string, version: string) => effectiveConfigPath(read(text), rulesFor(version));
  t.equal(path('', '2.2.0'), '/etc/containerd/certs.d:/etc/docker/certs.d');
  t.equal(path('', '2.1.9'), '');
  t.equal(path('config_path = "/x"', '2.2.0'), '/x');
  t.equal(path('[mirrors."*"]', '2.2.0'), '');
  t.equal(path('[configs.a.auth]', '2.2.0'), '/etc/containerd/certs.d:/etc/docker/certs.d');
});

t.test('client or transfer service is chosen as containerd does', async (t) => {
  const local = (text: string, version?: string) => usesLocalPull(parseTable(text), rulesFor(version));
  t.equal(local('', '2.0.5'), true);
  t.equal(local('', '2.1.0'), false);
  t.equal(local('max_concurrent_downloads = 3'), false);
  t.equal(local('max_concurrent_downloads = 4'), true);
  t.equal(local('disable_snapshot_annotations = true'), false);
  t.equal(local('image_pull_with_sync_fs = true'), true);
  t.equal(local('[registry.mirrors]'), false, 'an empty table is not in use');
  t.throws(() => local('use_local_image_pull = 1'), mistyped);
});

t.test('contradictory settings are errors', async (t) => {
  const refused = { name: 'InvalidConfig', message: /cannot be set|failed to parse/ };
  t.throws(() => validateRegistry(read('config_path = "/a"\n[mirrors.x]')), refused);
  t.throws(() => validateRegistry(read('config_path = "/a"\n[configs.x.tls]', '1.7.24')), refused);
  t.doesNotThrow(
    () => validateRegistry(read('config_path = "/a"\n[configs.x.tls]', '2.0.0')),
    'tls is no longer known',
  );
  t.throws(() => validateRegistry(read('[auths."https://%zz"]')), refused);
});

t.test('auths become configs of their host', async (t) => {
  const { configs } = validateRegistry(
    read(
      '[auths."https://a.example/v1/"]\nusername = "u"\n[auths."b.example"]\nusername = "w"\n[configs.a.tls]\n',
    ),
  );
  t.strictSame(
    [...configs].map(([host, { auth }]) => [host, auth?.username]),
    [
      ['a', undefined],
      ['a.example', 'u'],
      ['b.example', 'w'],
    ],
  );
});

t.test('wrong types are errors', async (t) => {
  for (const text of [
    'config_path = 1',
    'mirrors = 1',
    '[mirrors]\na = 1',
    '[mirrors.a]\nendpoint = "x"',
    '[configs.a]\nauth = 1',
    '[configs.a.auth]\npassword = 1',
    '[headers]\na = "x"',
  ]) {
    t.throws(() => read(text), mistyped, text);
  }
});

t.test('secrets are secrets', async (t) => {
  const registry = read(
    '[configs.a.auth]\npassword = "topsecret1"\nauth = "topsecret2"\nidentitytoken = "topsecret3"\n[headers]\nx = ["topsecret4"]',
  );
  t.notMatch(JSON.stringify([...registry.configs, registry.headers]), /topsecret/);
  t.equal(reveal(registry.headers[0]?.value ?? (undefined as never)), 'topsecret4');
});

t.test('mirrors are read', async (t) => {
  const mirrors = new Map([
    ['a', ['m/x', 'localhost:1']],
    ['*', ['https://star']],
    ['bad', ['https://%zz']],
  ]);
  t.strictSame(mirrorEndpoints(mirrors, 'a'), ['https://m/x', 'http://localhost:1', 'https://a']);
  t.strictSame(mirrorEndpoints(mirrors, 'b'), ['https://star', 'https://b']);
  t.strictSame(mirrorEndpoints(mirrors, 'localhost:5'), ['https://star', 'http://localhost:5']);
  t.throws(() => mirrorEndpoints(mirrors, 'bad'), { name: 'InvalidConfig' });
  like(t, mirrorHosts(read('[mirrors.a]\nendpoint = ["https://m", "http://m/path"]'), 'a'), [
    { scheme: 'https', host: 'm', path: '/v2', isDefault: false },
    { scheme: 'http', host: 'm', path: '/path', isDefault: false },
    { scheme: 'https', host: 'a', path: '/v2', isDefault: true },
  ]);
});

t.test('TLS settings of 1.x are read', async (t) => {
  const tls =
    '[mirrors.a]\nendpoint = ["https://m:1"]\n[configs."m:1".tls]\nca_file = "/ca"\ncert_file = "/c"\nkey_file = "/k"\n';
  like(t, mirrorHosts(read(tls, '1.7.24'), 'a')[0], {
    ca: ['/ca'],
    client: [['/c', '/k']],
    skipVerify: false,
  });
  like(t, mirrorHosts(read('[configs.a.tls]\ninsecure_skip_verify = true', '1.7.24'), 'a'), [
    { ca: undefined, client: undefined, skipVerify: true },
  ]);
  t.equal(mirrorHosts(read(tls), 'a')[0]?.ca, undefined);
  t.throws(() => mirrorHosts(read('[configs.a.tls]\ncert_file = "/c"', '1.7.24'), 'a'), /go together/);
});

const base64 = (text: string) => secret(Buffer.from(text).toString('base64'));
const shown = (auth: Parameters<typeof parseAuth>[0]) => {
  const found = parseAuth(auth);
  return found && [found.username, reveal(found.password)];
};

t.test('the precedence of sources', async (t) => {
  const all = { username: 'u', password: secret('p'), auth: base64('a:b'), identityToken: secret('i') };
  t.strictSame(shown(all), ['u', 'p']);
  t.strictSame(shown({ ...all, username: '' }), ['', 'i'], 'a password without a user name is ignored');
  t.strictSame(shown({ ...all, username: '', identityToken: undefined }), ['a', 'b']);
  t.strictSame(shown({ username: 'u' }), ['u', '']);
  t.strictSame(shown({ password: secret('p') }), undefined);
  t.strictSame(shown({}), undefined);
  t.strictSame(shown({ auth: base64('a:b:c\0\0') }), ['a', 'b:c']);
});

t.test('invalid auth is an error', async (t) => {
  for (const auth of ['dTpw=', 'a b', 'dTp', Buffer.from('nocolon').toString('base64')]) {
    t.throws(() => parseAuth({ auth: secret(auth) }), { name: 'InvalidConfig' }, auth);
  }
});

t.test('versions are parsed', async (t) => {
  t.strictSame(parseVersion('v2.1.4'), [2, 1, 4]);
  t.strictSame(parseVersion('1.6.20~ds1'), [1, 6, 20]);
  t.strictSame(parseVersion('2.1.5-k3s1'), [2, 1, 5]);
  t.strictSame(parseVersion('2.3'), [2, 3, 0]);
  for (const none of ['', 'latest', '2', 'a2.1', '99999.1']) t.equal(parseVersion(none), undefined, none);
});

t.test('each rule has its first and last version', async (t) => {
  const begins: [keyof ReturnType<typeof rulesFor>, before: string, from: string][] = [
    ['refusesNewerFiles', '1.6.38', '1.7.0'],
    ['relativeGlobs', '1.6.38', '1.7.0'],
    ['httpFallback', '1.6.38', '1.7.0'],
    ['hostsOptional', '1.7.31', '1.7.32'],
    ['migrates', '1.7.32', '2.0.0'],
    ['migratesEachFile', '2.2.9', '2.3.0'],
    ['mergesPlugins', '1.7.32', '2.0.0'],
    ['hostsByHeader', '1.7.32', '2.0.0'],
    ['transferService', '2.0.9', '2.1.0'],
    ['tokenHeaders', '2.0.9', '2.1.0'],
    ['dialTimeout', '2.0.9', '2.1.0'],
    ['defaultConfigPath', '2.1.9', '2.2.0'],
    ['referrers', '2.1.9', '2.2.0'],
  ];
  for (const [rule, before, from] of begins) {
    t.equal(rulesFor(before)[rule], false, `${rule} before ${from}`);
    t.equal(rulesFor(from)[rule], true, `${rule} from ${from}`);
    t.equal(rulesFor()[rule], true, `${rule} in the newest`);
  }
  t.equal(rulesFor('1.7.32').tlsTables, true);
  t.equal(rulesFor('2.0.0').tlsTables, false);
  t.strictSame(
    ['1.6.0', '2.0.0', '2.2.9', '2.3.0', undefined].map((version) => rulesFor(version).configVersion),
    [2, 3, 3, 4, 4],
  );
});

t.test('the program is chosen by the configuration', async (t) => {
  t.match(programsFor('/var/lib/rancher/k3s/agent/etc/containerd/config.toml')[0], /k3s/);
  t.strictSame(programsFor('/else/config.toml'), programsFor('/etc/containerd/config.toml'));
});
