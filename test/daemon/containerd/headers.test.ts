/** The settings of a host stay with that host: each test is an attack that fails. */
import t from 'tap';
import { image } from '../../support/registry/content.ts';
import { lookUp, startRegistry, testClient } from '../../support/registry/client.ts';
import { startTestRegistry } from '../../support/registry/server.ts';
import { RegistryError } from '../../../src/registry/manifest-lookup.ts';
import { certsD, nodeWith, shown } from './files.ts';

const config = '/etc/containerd/config.toml';

t.test('headers of _default do not reach the default host of a namespace', async (t) => {
  const hosts =
    '[header]\nAuthorization = "Basic topsecret"\nX-Key = "topsecret"\n[host."https://m.example".header]\nX-Key = "m"';
  const { containerd } = await nodeWith(t, { [config]: certsD, '/certs.d/_default/hosts.toml': hosts });
  t.same(await shown(containerd, 'evil.example'), [
    'https://m.example/v2?ns X-Key=m',
    'https://evil.example/v2',
  ]);
});

t.test('headers of the directory of a namespace reach its default host', async (t) => {
  const { containerd } = await nodeWith(t, {
    [config]: certsD,
    '/certs.d/gcr.io/hosts.toml': '[header]\nAuthorization = "x"',
  });
  t.same(await shown(containerd, 'gcr.io'), ['https://gcr.io/v2 Authorization=x']);
});

t.test('login headers for every registry do not reach the default host of a namespace', async (t) => {
  const headers =
    '[plugins."io.containerd.cri.v1.images".registry.headers]\nAuthorization = ["x"]\nCookie = ["y"]\nX-Client = ["z"]\n';
  const { containerd } = await nodeWith(t, {
    [config]: certsD + headers,
    '/certs.d/gcr.io/hosts.toml': 'server = "s.example"',
  });
  t.same(await shown(containerd, 'evil.example'), ['https://evil.example/v2 X-Client=z']);
  t.same(await shown(containerd, 'gcr.io'), ['https://s.example/v2?ns Authorization=x Cookie=y X-Client=z']);
});

t.test('headers of connections and bodies are never sent', async (t) => {
  const names = [
    'Host',
    'Content-Length',
    ' transfer-encoding',
    'TRAILER',
    'Connection',
    'Upgrade',
    'Expect',
    'TE',
    'Accept',
    'Accept-Encoding',
    'Content-Type',
    'Keep-Alive',
    'Proxy-Connection',
  ];
  const hosts = `server = "s.example"\n[header]\n${names.map((name) => `"${name}" = "1"`).join('\n')}\nx = "2"`;
  const { containerd } = await nodeWith(t, { [config]: certsD, '/certs.d/gcr.io/hosts.toml': hosts });
  t.same(await shown(containerd, 'gcr.io'), ['https://s.example/v2?ns x=2']);
});

t.test('a header cannot smuggle another one or another request', async (t) => {
  const registry = await startRegistry(t, { tls: false });
  registry.push('library/app', 'v1', image('linux/arm64'), 'gcr.io');
  const client = testClient();
  t.teardown(() => client.close());
  const smuggled = [
    '"x" = "a\\r\\nX-Evil: 1"',
    '"x" = "a\\nX-Evil: 1"',
    '"x\\r\\nX-Evil" = "1"',
    '"x: y\\nX-Evil" = "1"',
    '"x" = "a\\r\\n\\r\\nGET /evil HTTP/1.1\\r\\n"',
    '"" = "1"',
    '"x y" = "1"',
    '"x" = "\\u0000"',
  ];
  for (const header of smuggled) {
    const { containerd } = await nodeWith(t, {
      [config]: certsD,
      '/certs.d/gcr.io/hosts.toml': `server = "${registry.url}"\n[header]\n${header}`,
    });
    const endpoints = await containerd.endpoints('gcr.io');
    await t.rejects(lookUp(client, endpoints), RegistryError, header);
    await containerd.close();
  }
  t.equal(registry.requests.length, 0, 'no request was sent');
});

t.test('values are sent as Go sends them: UTF-8, and several as a list', async (t) => {
  const registry = await startRegistry(t, { tls: false });
  registry.push('library/app', 'v1', image('linux/arm64'), 'gcr.io');
  const client = testClient();
  t.teardown(() => client.close());
  const { containerd } = await nodeWith(t, {
    [config]: certsD,
    '/certs.d/gcr.io/hosts.toml': `server = "${registry.url}"\n[header]\nX-Name = "käse ☃"\nx-list = ["a", "b"]`,
  });
  await lookUp(client, await containerd.endpoints('gcr.io'));
  const headers = registry.requests[0]?.headers;
  t.equal(Buffer.from(String(headers?.['x-name']), 'latin1').toString('utf8'), 'käse ☃');
  t.equal(headers?.['x-list'], 'a, b');
});

t.test('headers and credentials of a host reach neither the next host nor a redirect', async (t) => {
  const [first, second, storage] = await Promise.all([
    startTestRegistry({ tls: false }),
    startTestRegistry({ tls: false }),
    startTestRegistry({ tls: false }),
  ]);
  t.teardown(() => Promise.all([first, second, storage].map((registry) => registry.close())));
  const redirecting = await startTestRegistry({ tls: false, blobsAt: storage.url });
  t.teardown(() => redirecting.close());
  redirecting.push('library/app', 'v1', image('linux/arm64'), 'gcr.io');
  const client = testClient();
  t.teardown(() => client.close());
  const { containerd } = await nodeWith(t, {
    [config]: certsD,
    '/certs.d/gcr.io/hosts.toml': `server = "${redirecting.url}"
[header]
Authorization = "Basic server"
X-Server = "1"
[host."${first.url}".header]
Authorization = "Basic first"
X-First = "1"
[host."${second.url}"]
`,
  });
  await lookUp(client, await containerd.endpoints('gcr.io')).catch(() => undefined);
  const seen = (registry: typeof first) =>
    registry.requests.map(({ headers }) =>
      [headers.authorization, headers['x-first'], headers['x-server']].join(),
    );
  t.ok(first.requests.length > 0 && second.requests.length > 0 && redirecting.requests.length > 0);
  t.same([...new Set(seen(first))], ['Basic first,1,']);
  t.same([...new Set(seen(second))], [',,']);
  t.same([...new Set(seen(redirecting))], ['Basic server,,1']);
  t.ok(storage.requests.length > 0, 'the redirect was followed');
  t.same([...new Set(seen(storage))], [',,']);
});
