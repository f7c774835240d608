import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import t, { type Test } from 'tap';
import { pemCertificatesIn, createTrust, describeTrust } from '../../../src/http/tls/trust.ts';
import { clientFor, endpointOf, lookUp, startRegistry } from '../../support/registry/client.ts';
import { createCa } from '../../support/certificates.ts';
import { multiArch } from '../../support/registry/content.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { listen } from '../../support/listen.ts';
import { like } from '../../support/like.ts';

/** A trust with a fake clock, and its reported problems. */
function trustOf(options: Partial<Parameters<typeof createTrust>[0]>) {
  const clock = createFakeClock();
  const problems: string[] = [];
  const onProblem = (file: string, message: string) => problems.push(`${file}: ${message}`);
  return { clock, problems, trust: createTrust({ environment: {}, clock, onProblem, ...options }) };
}

async function files(t: Test) {
  const [one, other] = [await createCa('one'), await createCa('other')];
  const root = t.testdir({ etc: { ssl: { certs: { 'ca-certificates.crt': `# one\n${one.cert}\n` } } } });
  return { root, one, other };
}

t.test(
  "trust has Node's roots, the node's bundle, SSL_CERT_FILE below the host root, and configured files",
  async (t) => {
    const { root, one, other } = await files(t);
    const third = await createCa('third');
    await writeFile(join(root, 'extra.pem'), `${other.cert}\n${one.cert}`);
    await writeFile(join(root, 'variable.pem'), third.cert);
    const { trust, problems } = trustOf({
      environment: { SSL_CERT_FILE: '/variable.pem' },
      hostRoot: root,
      extraFiles: [join(root, 'extra.pem')],
    });
    const { certificates } = await trust.roots();
    t.equal(certificates.length, rootCertificates.length + 3, 'each once');
    for (const pem of [one.cert, other.cert, third.cert]) t.ok(certificates.includes(pem.trim()));
    t.strictSame(problems, []);
  },
);

t.test('only the first existing bundle is read; a missing one is not a problem', async (t) => {
  const { root, one, other } = await files(t);
  await mkdir(join(root, 'etc/pki/tls/certs'), { recursive: true });
  await writeFile(join(root, 'etc/pki/tls/certs/ca-bundle.crt'), other.cert);
  const problems: string[] = [];
  const make = (hostRoot: string) =>
    trustOf({ hostRoot, onProblem: (file) => problems.push(file) }).trust.roots();
  const { certificates } = await make(root);
  t.ok(certificates.includes(one.cert.trim()));
  t.notOk(certificates.includes(other.cert.trim()));
  t.equal((await make(t.testdirName)).certificates.length, rootCertificates.length + 1);
  t.equal((await make('/nonexistent')).certificates.length, rootCertificates.length);
  t.strictSame(problems, []);
});

t.test('an unusable configured file is reported once, and the others are used', async (t) => {
  const { root, one } = await files(t);
  await writeFile(join(root, 'empty.pem'), 'nothing');
  await writeFile(join(root, 'huge.pem'), Buffer.alloc(8 * 1024 * 1024 + 1));
  const extraFiles = ['empty.pem', 'huge.pem', 'missing.pem', 'etc'].map((name) => join(root, name));
  const { trust, problems, clock } = trustOf({ hostRoot: root, extraFiles });
  t.ok((await trust.roots()).certificates.includes(one.cert.trim()));
  await clock.advance(60_000);
  await trust.roots();
  t.equal(problems.length, 4);
  like(t, problems, [/no PEM certificate/, /larger than/, /there is no such file/, /not a regular file/]);
});

t.test('symbolic links are resolved inside the host root', async (t) => {
  const [one, other] = [await createCa('one'), await createCa('other')];
  const outside = t.testdir({ 'other.pem': other.cert, root: {} });
  const node = join(outside, 'root');
  await mkdir(join(node, 'etc/ssl/certs'), { recursive: true });
  await mkdir(join(node, 'etc/pki/ca-trust'), { recursive: true });
  await writeFile(join(node, 'etc/pki/ca-trust/bundle.pem'), Buffer.from(`# caf\xe9\n${one.cert}`, 'latin1'));
  await symlink('/etc/pki/ca-trust/bundle.pem', join(node, 'etc/ssl/certs/ca-certificates.crt'));
  await symlink('../other.pem', join(node, 'climbing.pem'));
  const { trust, problems } = trustOf({ environment: { SSL_CERT_FILE: '/climbing.pem' }, hostRoot: node });
  const { certificates } = await trust.roots();
  t.ok(certificates.includes(one.cert.trim()), 'an absolute link, as distributions have');
  t.notOk(certificates.includes(other.cert.trim()));
  like(t, problems, [/climbing\.pem: leads out of/]);
});

t.test('the trusted files are described', async (t) => {
  const { root, other } = await files(t);
  await writeFile(join(root, 'both.pem'), other.cert);
  const extraFiles = [join(root, 'both.pem'), join(root, 'none.pem')];
  like(t, await describeTrust({ environment: {}, hostRoot: root, extraFiles }), [
    { where: '/etc/ssl/certs/ca-certificates.crt', state: 'used', what: 'certificates: 1' },
    { where: extraFiles[0], state: 'used' },
    { where: extraFiles[1], state: 'left-out', what: /there is no such file/ },
  ]);
  like(t, await describeTrust({ environment: { SSL_CERT_FILE: '/x' }, hostRoot: '/nonexistent' }), [
    { state: 'absent', what: /Node\.js/ },
    { where: '/x', state: 'left-out' },
  ]);
});

t.test('files are read again after a minute', async (t) => {
  const { root, other } = await files(t);
  const clock = createFakeClock();
  const trust = createTrust({ environment: {}, clock, hostRoot: root });
  const before = await trust.roots();
  await writeFile(join(root, 'new'), other.cert);
  await rename(join(root, 'new'), join(root, 'etc/ssl/certs/ca-certificates.crt'));
  await clock.advance(59_999);
  t.equal(await trust.roots(), before);
  await clock.advance(1);
  const after = await trust.roots();
  t.not(after.id, before.id);
  t.ok(after.certificates.includes(other.cert.trim()));
});

t.test('text between certificates is ignored', async (t) => {
  const { cert } = await createCa();
  t.strictSame(
    pemCertificatesIn(`Bag attributes\n${cert}\n-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----`),
    [cert.trim()],
  );
  t.strictSame(pemCertificatesIn('-----BEGIN CERTIFICATE-----'), []);
});

t.test('a registry with a private CA is used only if its CA is trusted', async (t) => {
  const registry = await startRegistry(t);
  registry.push('library/app', 'v1', multiArch(['linux/amd64']));
  const file = join(t.testdir({}), 'ca.pem');
  await writeFile(file, registry.ca);
  const [ignorant, knowing] = [clientFor(t), clientFor(t, { caFiles: [file] })];
  const ask = (client: typeof knowing, ca: string[], skipVerify = false) =>
    lookUp(client, endpointOf(registry, { tls: { ca, client: [], skipVerify } }));
  await t.rejects(ask(ignorant, []), { code: 'unavailable', message: /certificate is not trusted/ });
  t.strictSame(registry.requests, []);
  t.equal((await ask(knowing, [])).platforms.length, 1);
  t.equal((await ask(ignorant, [], true)).platforms.length, 1);
  const broken = '-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----';
  await t.rejects(ask(ignorant, [broken]), { code: 'unavailable', message: /not usable PEM/ });
});

t.test('an intermediate CA is trusted as it is configured', async (t) => {
  const root = await createCa('root');
  const [ours, other] = [await root.intermediate('ours'), await root.intermediate('of others')];
  const certified = await ours.issue({ cn: 'registry', ip: ['127.0.0.1'] });
  const server = createServer(certified, (_request, response) => response.writeHead(404).end());
  const port = await listen(server);
  const [client, registry] = [clientFor(t), await startRegistry(t)];
  t.teardown(() => server.close().closeAllConnections());
  const base = `https://127.0.0.1:${port}/v2`;
  const ask = (ca: string): Promise<unknown> => {
    const tls = { ca: [ca], client: [], skipVerify: false };
    return lookUp(client, endpointOf(registry, { base, tls }));
  };
  await t.rejects(ask(ours.cert), { code: 'not-found' }, 'it gets the request');
  await t.rejects(ask(other.cert), { code: 'unavailable', message: /certificate is not trusted/ });
});
