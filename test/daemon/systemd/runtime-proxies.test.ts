/** Agents use the proxy of the node's container runtime. */
import t, { type Test } from 'tap';
import { openRuntimeProxies } from '../../../daemon/systemd/runtime-proxies.ts';
import type { RuntimeName } from '../../../src/nodes/node-report.ts';
import type { Log } from '../../../src/telemetry/log.ts';
import { run } from '../../cmd/run.ts';
import { files, registry } from '../../cmd/world.ts';
import { captureLog } from '../../support/captured.ts';
import { multiArch } from '../../support/registry/content.ts';
import { writeFiles } from '../../support/write-files.ts';
import { startTestProxy } from '../../support/registry/proxy.ts';
import { like } from '../../support/like.ts';

const dropIn = '/etc/systemd/system/containerd.service.d/proxy.conf';

async function open(
  t: Test,
  root: string,
  own: Readonly<Record<string, string>> = {},
  runtime: RuntimeName = 'containerd',
  log?: Log,
) {
  const proxies = await openRuntimeProxies({ hostRoot: root, runtime, own, pollMs: 2 ** 30, log });
  t.teardown(() => proxies.close());
  return proxies;
}

t.test('only the proxy variables of containerd are used, also after a change', async (t) => {
  const root = t.testdir();
  const { log, lines } = captureLog('info');
  const proxies = await open(t, root, { PATH: '/bin' }, 'containerd', log);
  const { environment } = proxies;
  t.equal(environment['HTTPS_PROXY'], undefined);
  t.equal(proxies.fingerprint(), undefined);
  like(t, proxies.describe(), [{ state: 'absent', what: /neither directly nor by a service; no requests/ }]);
  writeFiles(root, {
    [dropIn]:
      '[Service]\nEnvironment=HTTPS_PROXY=http://ann:password-x@p.corp:3128 NO_PROXY=.corp LD_PRELOAD=/x\n',
  });
  await proxies.refresh();
  like(t, environment, { PATH: '/bin', HTTPS_PROXY: 'http://ann:password-x@p.corp:3128', NO_PROXY: '.corp' });
  t.notOk('LD_PRELOAD' in environment);
  const first = proxies.fingerprint();
  t.type(first, 'string');
  const parts = proxies.describe();
  like(t, parts, [{ where: 'HTTPS_PROXY', what: 'p.corp:3128, with a login, from containerd.service' }, {}]);
  t.notMatch(JSON.stringify(parts), 'password-x');
  writeFiles(root, { [dropIn]: '[Service]\nEnvironment=https_proxy=http://other.corp:3128\n' });
  await proxies.refresh();
  t.equal(environment['https_proxy'], 'http://other.corp:3128');
  t.equal(environment['HTTPS_PROXY'], undefined);
  t.not(proxies.fingerprint(), first);
  t.equal(lines.length, 2, 'logged if there are any');
  t.match(lines[1], /"variables":\["https_proxy"\]/);
});

t.test("the agent's own variables replace those of the runtime", async (t) => {
  const root = t.testdir();
  writeFiles(root, { [dropIn]: '[Service]\nEnvironment=HTTPS_PROXY=http://p.corp:3128 NO_PROXY=.corp\n' });
  const proxies = await open(t, root, { HTTP_PROXY: 'http://own.corp:1' });
  t.strictSame(proxies.environment, { HTTP_PROXY: 'http://own.corp:1' });
  like(t, proxies.describe(), [{ where: 'HTTP_PROXY', differs: [/systemctl/] }]);
});

t.test('k3s has separate variables for its containerd', async (t) => {
  const root = t.testdir();
  writeFiles(root, {
    '/etc/systemd/system/k3s.service': '[Service]\nEnvironmentFile=-/etc/systemd/system/k3s.service.env\n',
  });
  writeFiles(root, {
    '/etc/systemd/system/k3s.service.env':
      'HTTPS_PROXY=http://k3s:1\nCONTAINERD_HTTPS_PROXY=http://c:1\nNO_PROXY=a\n',
  });
  const { environment } = await open(t, root);
  like(t, environment, { HTTPS_PROXY: 'http://c:1', NO_PROXY: 'a' });
});

t.test('on a node with CRI-O, its service counts, whatever a containerd has', async (t) => {
  const root = t.testdir();
  writeFiles(root, {
    [dropIn]: '[Service]\nEnvironment=HTTPS_PROXY=http://docker:1\n',
    '/etc/systemd/system/crio.service.d/proxy.conf': '[Service]\nEnvironment=HTTPS_PROXY=http://crio:1\n',
  });
  const { environment } = await open(t, root, {}, 'cri-o');
  t.equal(environment['HTTPS_PROXY'], 'http://crio:1');
});

t.test('requests to registries use the proxy of the node', async (t) => {
  const server = await registry(t, { names: ['registry.test'] });
  server.push('library/app', 'v1', multiArch(['linux/arm64']));
  const proxy = await startTestProxy({ to: { host: '127.0.0.1', port: server.port } });
  t.teardown(() => proxy.close());
  const root = t.testdir();
  writeFiles(root, { [dropIn]: `[Service]\nEnvironment=HTTPS_PROXY=${proxy.url}\n` });
  const { ca } = files(t, { ca: server.ca });
  const args = ['--host-root', root, '--ca-files', ca, 'registry.test/library/app:v1'];
  const { code, out, err } = await run(['inspect', ...args], { env: {} });
  t.equal(code, 0, err);
  t.match(out, 'arm64');
  like(t, proxy.requests[0], { line: 'CONNECT registry.test:443' });
});
