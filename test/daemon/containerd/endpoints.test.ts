import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createContainerdEndpoints } from '../../../daemon/containerd/endpoints.ts';
import { reveal } from '../../../src/telemetry/secret.ts';
import { createCa } from '../../support/certificates.ts';
import { certsD, configFile, hostsFile, nodeWith, nodeWithHosts, shown } from './files.ts';
import { writeFiles } from '../../support/write-files.ts';
import { image } from '../../support/registry/content.ts';
import { lookUp, startRegistry, testClient } from '../../support/registry/client.ts';
import { RegistryError } from '../../../src/registry/manifest-lookup.ts';
import { manualRefresh } from '../../support/manual-refresh.ts';
import { until } from '../../support/until.ts';
import { like } from '../../support/like.ts';

const config = configFile;
const plugin = 'plugins."io.containerd.cri.v1.images"';
const problems = (containerd: { problems(): readonly { origin: string; message: string }[] }) =>
  containerd.problems().map(({ origin, message }) => `${origin}: ${message}`);

t.test('without configuration the endpoints depend on the version', async (t) => {
  const cases: [version: string, namespace: string, endpoints: string[]][] = [
    ['2.4.2', 'docker.io', ['https://registry-1.docker.io/v2']],
    ['2.4.2', 'gcr.io', ['https://gcr.io/v2']],
    ['2.4.2', 'localhost:5000', ['https://localhost:5000/v2 or http']],
    ['2.0.5', 'localhost:5000', ['http://localhost:5000/v2']],
    ['1.6.20', 'localhost', ['http://localhost/v2']],
    ['1.7.24', 'docker.io', ['https://registry-1.docker.io/v2']],
  ];
  for (const [version, namespace, endpoints] of cases) {
    const { containerd } = await nodeWith(t, {}, { version });
    t.strictSame(await shown(containerd, namespace), endpoints, `${version} ${namespace}`);
    t.strictSame(problems(containerd), []);
  }
  const { containerd } = await nodeWith(t, {});
  like(t, await containerd.endpoints({ domain: 'gcr.io' }), [
    { origin: 'default', acceptsCredentials: true, resolve: true, pull: true },
  ]);
});

t.test('runtime and pull mode are reported', async (t) => {
  const forced = `version = 3\n[${plugin}]\nuse_local_image_pull = true\n`;
  const discards = `version = 3\n[${plugin}]\ndiscard_unpacked_layers = true\n`;
  const other = 'version = 3\n';
  const disabled = 'version = 3\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n';
  const runtime = (version: string) => ({ name: 'containerd', version });
  const cases: [version: string | undefined, text: string | undefined, found: unknown][] = [
    ['2.1.4', forced, { runtime: runtime('2.1.4'), pullMode: 'local' }],
    ['2.4.2', discards, { runtime: runtime('2.4.2'), pullMode: 'local' }],
    ['v2.4.2', other, { runtime: runtime('2.4.2'), pullMode: 'transfer' }],
    ['2.4.2', undefined, { runtime: runtime('2.4.2') }],
    ['2.0.5', undefined, { runtime: runtime('2.0.5'), pullMode: 'local' }],
    ['1.6.20~ds1', other, { runtime: runtime('1.6.20~ds1'), pullMode: 'local' }],
    ['2.4.2', disabled, {}],
    [undefined, other, { runtime: runtime('unknown') }],
  ];
  for (const [version, text, found] of cases) {
    const { containerd } = await nodeWith(t, text === undefined ? {} : { [config]: text }, { version });
    t.strictSame(containerd.report(), found, `${version} ${text}`);
    if (text === disabled) like(t, problems(containerd), [/it disables the CRI plugin, so the kubelet does/]);
  }
});

t.test('endpoints of hosts.toml', async (t) => {
  const hosts = `server = "https://upstream.example"
[header]
X-Up = "up"
[host."https://mirror.example/proxy"]
capabilities = ["pull"]
[host."https://mirror.example/proxy".header]
X-Mirror = ["a", "b"]
[host."http://plain.example:81"]
skip_verify = false
dial_timeout = "3s"
[host."httpx://x"]
[host."https://b.example/x?y"]
override_path = true
`;
  const { containerd } = await nodeWith(t, { [config]: certsD, '/certs.d/docker.io/hosts.toml': hosts });
  t.strictSame(await shown(containerd, 'docker.io'), [
    'https://mirror.example/proxy/v2?ns X-Mirror=a X-Mirror=b',
    'https://plain.example:81/v2?ns or http',
    'https://b.example/x?ns',
    'https://upstream.example/v2?ns X-Up=up',
  ]);
  const [mirror, plain] = await containerd.endpoints({ domain: 'docker.io' });
  like(t, mirror, {
    resolve: false,
    pull: true,
    origin: '/certs.d/docker.io',
    host: 'mirror.example',
    namespace: 'docker.io',
  });
  t.equal(plain?.dialTimeoutMs, 3000);
});

t.test(
  'since 2.1 token servers get headers of the host; those for every registry only from the client',
  async (t) => {
    const everywhere = `[${plugin}.registry.headers]\nX-All = ["all"]\n`;
    const local = `[${plugin}]\nuse_local_image_pull = true\n`;
    const hosts = '[host."https://one.example".header]\nX-One = "one"\nAuthorization = "Basic x"\n';
    const cases: [version: string, text: string, headers: string, tokenHeaders: string | undefined][] = [
      ['2.1.0', '', 'X-All X-One Authorization', 'X-One Authorization'],
      ['2.0.9', '', 'X-All X-One Authorization', undefined],
      ['2.1.0', local, 'X-All X-One Authorization', 'X-All X-One Authorization'],
    ];
    for (const [version, text, headers, tokenHeaders] of cases) {
      const files = { [config]: certsD + everywhere + text, [hostsFile]: hosts };
      const { containerd } = await nodeWith(t, files, { version });
      const [mirror] = await containerd.endpoints({ domain: 'gcr.io' });
      const names = (of = mirror?.headers) => of?.map(({ name }) => name).join(' ');
      t.equal(names(), headers, version);
      t.equal(mirror?.tokenHeaders && names(mirror.tokenHeaders), tokenHeaders, `${version} ${text}`);
    }
  },
);

t.test('a broken hosts.toml keeps its last good content', async (t) => {
  const { root, containerd, write } = await nodeWithHosts(t, '[host."https://one.example"]');
  const fingerprint = containerd.fingerprint();
  await write({ [hostsFile]: '[host."https://two.exam' });
  await write({ [hostsFile]: '[host."https://two.examp' });
  t.strictSame(await shown(containerd, 'gcr.io'), ['https://one.example/v2?ns', 'https://gcr.io/v2']);
  t.equal(containerd.fingerprint(), fingerprint);
  like(t, problems(containerd), [
    /^\/certs\.d\/gcr\.io\/hosts\.toml: line 1 is not valid TOML; its last good content/,
  ]);
  await write({ [hostsFile]: '' });
  t.strictSame(await shown(containerd, 'gcr.io'), ['https://gcr.io/v2'], 'an empty file is valid');
  t.strictSame(problems(containerd), []);
  await write({ [hostsFile]: 'server = "s.example"' });
  t.strictSame(await shown(containerd, 'gcr.io'), ['https://s.example/v2?ns']);
  rmSync(join(root, hostsFile));
  await containerd.refresh();
  t.strictSame(await shown(containerd, 'gcr.io'), ['https://gcr.io/v2'], 'there is no last content');
});

t.test('a hosts.toml that was never valid is ignored, as in containerd', async (t) => {
  const { containerd } = await nodeWithHosts(t, 'capabilities = ["x"]');
  t.strictSame(await shown(containerd, 'gcr.io'), ['https://gcr.io/v2']);
  like(t, problems(containerd), [/unknown capability x; as in containerd, only the certificate files/]);
});

t.test('a configuration that stops containerd is an error', async (t) => {
  const { containerd, write } = await nodeWith(t, {
    [config]: 'version = 9',
    [hostsFile]: 'server = "s.example"',
  });
  t.strictSame(await shown(containerd, 'gcr.io'), ['https://gcr.io/v2']);
  like(t, problems(containerd), [/newer than 4.*would not start with it; the defaults are in force/]);
  await write({ [config]: certsD });
  t.strictSame(await shown(containerd, 'gcr.io'), ['https://s.example/v2?ns']);
  await write({ [config]: `${certsD}[plugins."io.containerd.cri.v1.images".registry.mirrors.x]` });
  t.strictSame(await shown(containerd, 'gcr.io'), ['https://s.example/v2?ns']);
  like(t, problems(containerd), [/`mirrors` cannot be set when .* the last good content stays in force/]);
});

t.test('certificate files are read, unusable ones reported', async (t) => {
  const ca = await createCa();
  const pair = await ca.issue({ cn: 'client', client: true });
  const other = await ca.issue({ cn: 'other', client: true });
  const dir = '/certs.d/r.example:5000';
  const { containerd, write } = await nodeWith(t, {
    [config]: certsD,
    [`${dir}/ca.crt`]: `text\n${ca.cert}`,
    [`${dir}/c.cert`]: pair.cert,
    [`${dir}/c.key`]: pair.key,
  });
  const [endpoint] = await containerd.endpoints({ domain: 'r.example:5000' });
  t.equal(endpoint?.tls.ca.join().trim(), ca.cert.trim());
  t.equal(endpoint?.tls.client[0]?.certificate, pair.cert);
  t.notMatch(JSON.stringify(endpoint), /PRIVATE KEY/);
  const noCa = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
  const failing: [name: string, files: Record<string, string>, message: RegExp][] = [
    ['a key of another', { 'c.key': other.key }, /c\.key: it does not contain the key of/],
    ['no CA', { 'c.key': pair.key, 'ca.crt': noCa }, /ca\.crt: it contains no certificate/],
    [
      'no key beside CAs that take longer to read',
      { 'ca.crt': ca.cert.repeat(300), 'hosts.toml': 'ca = "ca.crt"\nclient = "c.cert"' },
      /c\.cert: it does not contain the key of/,
    ],
    ['a missing CA', { 'hosts.toml': '[host.m]\nca = "gone.pem"' }, /gone\.pem: there is no such file/],
  ];
  for (const [name, files, message] of failing) {
    await write(Object.fromEntries(Object.entries(files).map(([file, text]) => [`${dir}/${file}`, text])));
    const refusal = { code: 'unavailable', message };
    await t.rejects(containerd.endpoints({ domain: 'r.example:5000' }), refusal, name);
  }
  like(t, problems(containerd), [/gone\.pem: there is no such file; pulls that need it fail/]);
});

t.test('only the client reads several directories', async (t) => {
  const path = certsD.replace('/certs.d', '/none:/a:/b');
  const files = {
    '/a/_default/hosts.toml': 'server = "all.example"',
    '/b/gcr.io/hosts.toml': 'server = "exact.example"',
  };
  const split = await nodeWith(t, { [config]: path, ...files }, { version: '2.0.5' });
  const first = ['https://all.example/v2?ns'];
  t.strictSame(await shown(split.containerd, 'gcr.io'), first, 'the first directory with any of the names');
  const whole = await nodeWith(t, { [config]: path, ...files });
  t.strictSame(await shown(whole.containerd, 'gcr.io'), ['https://gcr.io/v2']);
  like(t, problems(whole.containerd), [
    /does not read \/a and \/b, because its transfer service .* use_local_image_pull/,
  ]);
  const local = await nodeWith(t, {
    [config]: path.replace('[', '[plugins."io.containerd.cri.v1.images"]\nuse_local_image_pull = true\n['),
    ...files,
  });
  t.strictSame(await shown(local.containerd, 'gcr.io'), first);
});

t.test('the deprecated tables give endpoints', async (t) => {
  const text = `version = 2
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
endpoint = ["https://m.example", "http://127.0.0.1:5000/base"]
[plugins."io.containerd.grpc.v1.cri".registry.configs."m.example".auth]
username = "u"
password = "topsecret1"
[plugins."io.containerd.grpc.v1.cri".registry.configs."registry-1.docker.io".auth]
auth = "broken"
`;
  for (const version of ['1.6.20', '1.7.24', '2.0.5', '2.4.2']) {
    const { containerd } = await nodeWith(t, { [config]: text }, { version });
    t.strictSame(
      await shown(containerd, 'docker.io'),
      ['https://m.example/v2?ns', 'http://127.0.0.1:5000/base?ns', 'https://registry-1.docker.io/v2'],
      version,
    );
    const [first, second, last] = await containerd.endpoints({ domain: 'docker.io' });
    like(t, first?.ownCredential, {
      source: 'containerd',
      key: 'm.example',
      origin: config,
      credential: { username: 'u' },
    });
    t.equal(first?.ownCredential && reveal(first.ownCredential.credential.password), 'topsecret1');
    t.equal(second?.ownCredential, undefined);
    t.equal(last?.origin, 'default');
    like(t, problems(containerd), [/configs\."registry-1\.docker\.io"\.auth ignored/]);
  }
});

t.test('mirrors without credentials', async (t) => {
  let allowed = false;
  const hosts = 'server = "s.example"\n[host."https://m.example"]';
  const { containerd } = await nodeWithHosts(t, hosts, { mirrorCredentials: () => allowed });
  const accepting = async () =>
    (await containerd.endpoints({ domain: 'gcr.io' })).map(({ acceptsCredentials }) => acceptsCredentials);
  t.strictSame(await accepting(), [false, true]);
  allowed = true;
  t.strictSame(await accepting(), [true, true]);
});

t.test('the fingerprint depends on the content', async (t) => {
  const hosts = { [hostsFile]: '[header]\nx = "topsecret1"' };
  const one = await nodeWith(t, { [config]: certsD, ...hosts });
  const fingerprint = one.containerd.fingerprint();
  const two = await nodeWith(t, { [config]: `# other text\n${certsD}`, ...hosts });
  t.equal(two.containerd.fingerprint(), fingerprint);
  const changes: Record<string, string>[] = [
    { [hostsFile]: '[header]\nx = "topsecret2"' },
    { '/certs.d/_default/hosts.toml': 'server = "s"' },
    { [config]: `${certsD}[${plugin}.registry.headers]\nx = ["y"]` },
    { [config]: `${certsD}[${plugin}.registry.configs.a.auth]\npassword = "topsecret3"` },
  ];
  const seen = new Set([fingerprint]);
  for (const files of changes) {
    await two.write(files);
    seen.add(two.containerd.fingerprint());
  }
  t.equal(seen.size, changes.length + 1);
  t.notMatch([...seen].join(), /topsecret/);
});

t.test('the first existing config.toml is used, also through a symbolic link', async (t) => {
  const root = t.testdir();
  writeFiles(root, { '/dir.toml/x': '', '/b.toml': certsD, [hostsFile]: 'server = "s.example"' });
  symlinkSync('/b.toml', join(root, 'a.toml'));
  const containerd = await createContainerdEndpoints({
    hostRoot: root,
    candidates: ['/none.toml', '/dir.toml', '/a.toml', '/b.toml'],
    version: '2.4.2',
    ...manualRefresh,
  });
  t.teardown(() => containerd.close());
  t.strictSame(await shown(containerd, 'gcr.io'), ['https://s.example/v2?ns']);
  t.equal(containerd.description(), '/a.toml of containerd 2.4.2, hosts in /certs.d');
});

t.test('changes are noticed by the watch', async (t) => {
  const { root, containerd } = await nodeWithHosts(t, '', { pollMs: 20, debounceMs: 5 });
  const before = containerd.fingerprint();
  writeFileSync(join(root, hostsFile), 'server = "s.example"');
  await until(() => containerd.fingerprint() !== before, 'a new fingerprint');
});

t.test('each part is described', async (t) => {
  const files = {
    [config]: certsD.replace('version = 3', 'version = 3\nimports = ["more.toml"]'),
    '/etc/containerd/more.toml': '',
    [hostsFile]: '[host.a]',
    '/certs.d/bad.example/hosts.toml': 'server = 1',
    '/certs.d/ca.example/ca.crt': 'no certificate',
  };
  const { root, containerd } = await nodeWith(t, files, {
    candidates: ['/none.toml', config, '/later.toml'],
  });
  const parts = async () => (await containerd.describe()).map(({ where, state }) => `${state} ${where}`);
  t.strictSame(await parts(), [
    'absent /none.toml',
    `used ${config}`,
    'unused /later.toml',
    'used /etc/containerd/more.toml',
    'used containerd',
    'used /certs.d',
    'used /certs.d/bad.example',
    'used /certs.d/gcr.io',
    'left-out /certs.d/bad.example/hosts.toml',
    'left-out /certs.d/ca.example/ca.crt',
  ]);
  writeFiles(root, { [config]: '[' });
  const broken = await createContainerdEndpoints({ hostRoot: root, candidates: [config], ...manualRefresh });
  t.teardown(() => broken.close());
  like(t, await broken.describe(), [
    { where: 'containerd', what: /unknown/ },
    { where: config, state: 'left-out', what: /the defaults are in force/ },
  ]);
});

t.test('headers of _default do not reach the default host of a namespace, those of its own do', async (t) => {
  const hosts =
    '[header]\nAuthorization = "Basic topsecret"\nX-Key = "topsecret"\n[host."https://m.example".header]\nX-Key = "m"';
  const { containerd } = await nodeWith(t, { [config]: certsD, '/certs.d/_default/hosts.toml': hosts });
  t.strictSame(await shown(containerd, 'evil.example'), [
    'https://m.example/v2?ns X-Key=m',
    'https://evil.example/v2',
  ]);
  const own = await nodeWithHosts(t, '[header]\nAuthorization = "x"');
  t.strictSame(await shown(own.containerd, 'gcr.io'), ['https://gcr.io/v2 Authorization=x']);
});

t.test('login headers for every registry do not reach the default host of a namespace', async (t) => {
  const headers =
    '[plugins."io.containerd.cri.v1.images".registry.headers]\nAuthorization = ["x"]\nCookie = ["y"]\nX-Client = ["z"]\n';
  const { containerd } = await nodeWith(t, {
    [config]: certsD + headers,
    [hostsFile]: 'server = "s.example"',
  });
  t.strictSame(await shown(containerd, 'evil.example'), ['https://evil.example/v2 X-Client=z']);
  t.strictSame(await shown(containerd, 'gcr.io'), [
    'https://s.example/v2?ns Authorization=x Cookie=y X-Client=z',
  ]);
});

t.test('headers of connections and bodies are never sent', async (t) => {
  const connection = ['Host', ' transfer-encoding', 'TRAILER', 'Connection', 'Upgrade', 'Keep-Alive'];
  const body = ['Content-Length', 'Expect', 'TE', 'Accept', 'Accept-Encoding', 'Content-Type'];
  const names = [...connection, ...body, 'Proxy-Connection'];
  const hosts = `server = "s.example"\n[header]\n${names.map((name) => `"${name}" = "1"`).join('\n')}\nx = "2"`;
  const { containerd } = await nodeWithHosts(t, hosts);
  t.strictSame(await shown(containerd, 'gcr.io'), ['https://s.example/v2?ns x=2']);
});

/** A registry with an image, and a client. */
async function startUpstream(t: Test) {
  const registry = await startRegistry(t, { tls: false });
  registry.push('library/app', 'v1', image('linux/arm64'), 'gcr.io');
  const client = testClient();
  t.teardown(() => client.close());
  return { registry, client };
}

t.test('a header cannot smuggle another one or another request', async (t) => {
  const { registry, client } = await startUpstream(t);
  const smuggled = [
    '"x: y\\nX-Evil" = "1"',
    '"x" = "a\\r\\n\\r\\nGET /evil HTTP/1.1\\r\\n"',
    '"" = "1"',
    '"x y" = "1"',
    '"x" = "\\u0000"',
  ];
  const { containerd, write } = await nodeWithHosts(t, '');
  for (const header of smuggled) {
    await write({ [hostsFile]: `server = "${registry.url}"\n[header]\n${header}` });
    const endpoints = await containerd.endpoints({ domain: 'gcr.io' });
    t.equal(endpoints[0]?.host, registry.host);
    await t.rejects(lookUp(client, endpoints), RegistryError, header);
  }
  t.equal(registry.requests.length, 0, 'no request was sent');
});

t.test('values are sent as Go sends them: UTF-8, and several as a list', async (t) => {
  const { registry, client } = await startUpstream(t);
  const header = '[header]\nX-Name = "käse ☃"\nx-list = ["a", "b"]';
  const { containerd } = await nodeWithHosts(t, `server = "${registry.url}"\n${header}`);
  await lookUp(client, await containerd.endpoints({ domain: 'gcr.io' }));
  const headers = registry.requests[0]?.headers;
  t.equal(Buffer.from(String(headers?.['x-name']), 'latin1').toString('utf8'), 'käse ☃');
  t.equal(headers?.['x-list'], 'a, b');
});
