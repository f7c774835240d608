import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { inspect } from 'node:util';
import t from 'tap';
import {
  authorizationHeader,
  inClusterAccess,
  kubeconfigAccess,
  type AccessNow,
} from '../../../src/kube/api/access.ts';
import { createCa } from '../../support/certificates.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { like } from '../../support/like.ts';

const headerOf = (access: AccessNow | undefined): string | undefined =>
  access && authorizationHeader(access)['authorization'];

void t.test('in a cluster: address, namespace, CA, and a token that is read again each minute', async (t) => {
  const dir = t.testdir({ token: 'first-token\n', 'ca.crt': 'CA', namespace: 'archwright\n' });
  const clock = createFakeClock();
  const access = await inClusterAccess(
    { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' },
    { dir, clock },
  );
  like(t, access, { server: 'https://[fd00::1]:6443', namespace: 'archwright' });
  const first = await access?.now();
  t.equal(headerOf(first), 'Bearer first-token');
  t.notMatch(inspect(first), /first-token/);
  writeFileSync(join(dir, 'token'), 'second-token');
  await clock.advance(59_999);
  t.equal(await access?.now(), first);
  await clock.advance(1);
  const second = await access?.now();
  t.strictSame(second?.tls, first?.tls, 'a new token needs no new connection');
  t.equal(headerOf(second), 'Bearer second-token');
  writeFileSync(join(dir, 'token'), 'third-token');
  access?.renew?.();
  t.equal(headerOf(await access?.now()), 'Bearer third-token', 'renew reads it at once');
});

void t.test('outside a cluster there is no access; inside, missing files are an error', async (t) => {
  t.equal(await inClusterAccess({}), undefined);
  await t.rejects(inClusterAccess({ KUBERNETES_SERVICE_HOST: '10.0.0.1' }, { dir: t.testdir() }));
});

void t.test('kubeconfig: contexts, client certificates, tokens, and unknown names', async (t) => {
  const ca = await createCa();
  const client = await ca.issue({ cn: 'admin', client: true });
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const cluster = { server: 'https://127.0.0.1:1', 'certificate-authority-data': base64(ca.cert) };
  const pair = { 'client-certificate-data': base64(client.cert), 'client-key-data': base64(client.key) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'one',
    clusters: [{ name: 'c', cluster }],
    contexts: [
      { name: 'one', context: { cluster: 'c', user: 'certificate', namespace: 'team' } },
      { name: 'two', context: { cluster: 'c', user: 'token' } },
    ],
    users: [
      { name: 'certificate', user: pair },
      { name: 'token', user: { token: 'a-bearer-token' } },
    ],
  };
  const file = join(t.testdir(), 'config');
  const before = JSON.stringify(config);
  writeFileSync(file, before);
  const one = await kubeconfigAccess({ path: file });
  like(t, one, { server: 'https://127.0.0.1:1', namespace: 'team', description: 'context one' });
  const withCertificate = await one?.now();
  t.equal(withCertificate?.tls.cert?.toString(), client.cert);
  t.equal(withCertificate?.tls.ca?.toString(), ca.cert);
  const two = await kubeconfigAccess({ path: file, context: 'two' });
  t.equal(two?.namespace, 'default');
  const withToken = await two?.now();
  t.strictSame(headerOf(withToken), 'Bearer a-bearer-token');
  t.notMatch(inspect(withToken), /a-bearer-token/);
  t.strictNotSame(withCertificate?.tls, withToken?.tls);
  writeFileSync(file, before.replace('a-bearer-token', 'a-new-token'));
  two?.renew?.();
  t.strictSame(headerOf(await two?.now()), 'Bearer a-new-token', 'renew reads the same context');
  writeFileSync(file, 'half a fi');
  two?.renew?.();
  t.strictSame(headerOf(await two?.now()), 'Bearer a-new-token', 'a partly written file is ignored');
  writeFileSync(file, before);
  await t.rejects(kubeconfigAccess({ path: file, context: 'three' }), {
    message: /no context three; it has one, two/,
  });
  await t.rejects(kubeconfigAccess({ path: `${file}-missing` }), {
    message: `kubeconfig ${file}-missing does not exist`,
  });
  const broken: [content: string, problem: RegExp][] = [
    ['null', /^kubeconfig \S+config is not a kubeconfig$/],
    ['users:\n- user: { token: a-secret', /^kubeconfig \S+config is not YAML in line 2: [^-]+$/],
  ];
  for (const [content, problem] of broken) {
    writeFileSync(file, content);
    await t.rejects(kubeconfigAccess({ path: file }), { message: problem });
  }
});

void t.test('two files of KUBECONFIG with one name are an error that says so', async (t) => {
  const file = 'clusters: [{ name: kubernetes, cluster: { server: "https://127.0.0.1:1" } }]';
  const dir = t.testdir({ a: file, b: file });
  t.intercept(process, 'env', { value: { KUBECONFIG: [join(dir, 'a'), join(dir, 'b')].join(delimiter) } });
  const message = /^kubeconfig \S+b has a name of an earlier file: Duplicate cluster: kubernetes$/;
  await t.rejects(kubeconfigAccess({}), { message });
});

void t.test('the default kubeconfig counts if it exists and has a context', async (t) => {
  const home = t.testdir();
  mkdirSync(join(home, '.kube'));
  t.intercept(process, 'env', { value: { HOME: home } });
  t.equal(await kubeconfigAccess({}), undefined);
  await t.rejects(kubeconfigAccess({ context: 'prod' }), { message: /no context prod/ });
  writeFileSync(join(home, '.kube/config'), '{}');
  t.equal(await kubeconfigAccess({}), undefined, 'no current context');
  const clusters = 'clusters: [{ name: c, cluster: { server: "https://127.0.0.1:1" } }]\n';
  const contexts = 'contexts: [{ name: x, context: { cluster: c } }]\ncurrent-context: x\n';
  writeFileSync(join(home, '.kube/config'), clusters + contexts);
  t.equal((await kubeconfigAccess({}))?.server, 'https://127.0.0.1:1');
});
