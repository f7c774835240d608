/** With cert-manager, no pod or request fails while certificates are lost, renewed and replaced; any issuer can sign the CA. */
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import { isIssuedBy, sameCertificates } from '../../../src/certificates/pem.ts';
import type { Secret } from '../../../src/kube/api/objects.ts';
import { paths } from '../../../src/kube/api/paths.ts';
import { createCa } from '../../support/certificates.ts';
import { until } from '../../support/until.ts';
import { ownNamespace, tryPod } from './archwright/archwright.ts';
import { skip } from './archwright/by-chart.ts';
import { createPods } from './archwright/load.ts';
import { install, leaves, type LeafSecret } from './cert-manager/installed.ts';
import { certManagerNamespace, renew, untilIssued } from './cert-manager/program.ts';
import { nodeOf, podOf } from './control-plane/pods.ts';

const server = '1.3.6.1.5.5.7.3.1';
const client = '1.3.6.1.5.5.7.3.2';
const webhookNames =
  'DNS:archwright-webhook.archwright.svc, DNS:archwright-webhook.archwright.svc.cluster.local';

/** Subject, names and usage of the certificates of docs/operate/certificates.md. */
const promised: Readonly<Record<LeafSecret, readonly (string | undefined)[]>> = {
  'archwright-webhook-tls': [undefined, webhookNames, server],
  'archwright-agent-tls': [undefined, 'DNS:archwright-agent', server],
  'archwright-webhook-client-tls': ['CN=archwright-webhook', undefined, client],
  'archwright-controller-client-tls': ['CN=archwright-controller', undefined, client],
};

const [own, root, intermediate] = ['CN=archwright-ca', 'CN=corporate root', 'CN=corporate intermediate'];
const issuerOf = (name: string): string => `
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: { name: ${name} }
spec: { ca: { secretName: ${name} } }
---`;
const issuers = `${['root', 'intermediate', 'without-root'].map(issuerOf).join('')}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: { name: intermediate, namespace: ${certManagerNamespace} }
spec:
  isCA: true
  commonName: corporate intermediate
  secretName: intermediate
  privateKey: { algorithm: ECDSA, size: 256 }
  issuerRef: { kind: ClusterIssuer, name: root }
`;

void t.test('archwright works with certificates of cert-manager', { skip }, async (t) => {
  const installed = await install(t);
  const { cluster, images, issued, askAgent, renewAll, untilPresented, untilTrusted } = installed;
  const lose = async (secretName: string): Promise<void> => {
    const path = paths.secrets(ownNamespace, secretName);
    await cluster.delete(path);
    await cluster.waitFor<Secret>(path, (now) => now?.data?.['tls.crt'] !== undefined);
  };

  const ca = (await issued('archwright-ca')).certificate;
  t.strictSame([ca.x509.subject, ca.x509.ca], [own, true]);
  for (const name of Object.keys(leaves) as LeafSecret[]) {
    const { certificate, intermediates, bundle } = await issued(name);
    const { subject, subjectAltName, keyUsage, ca: isCa } = certificate.x509;
    t.strictSame([subject, subjectAltName, ...keyUsage, isCa], [...promised[name], false], name);
    t.ok(isIssuedBy(certificate, ca));
    t.strictSame(intermediates, []);
    t.ok(sameCertificates(bundle, [ca]), 'only the CA of archwright is trusted');
  }
  await untilTrusted();
  const isAdmitted = (): Promise<boolean> =>
    tryPod(cluster).then(
      () => true,
      () => false,
    );
  await until(isAdmitted, 'the API server trusts the webhook');

  const load = createPods(t, cluster);
  const failed: string[] = [];
  const over = new AbortController();
  let requests = 0;
  const asking = (async () => {
    for (; !over.signal.aborted; await pause(50), requests++)
      await askAgent().catch((error: unknown) => failed.push(String(error)));
  })();
  t.teardown(() => over.abort());
  const more = async (): Promise<void> => {
    const wanted = requests + 10;
    await until(() => requests >= wanted, 'more requests');
  };
  const lost = await issued('archwright-agent-tls');
  await lose('archwright-agent-tls');
  t.not((await issued('archwright-agent-tls')).certificate.id, lost.certificate.id, 'a lost certificate');
  await renewAll();
  await untilPresented();
  // As at its renewal time: the four leaves are renewed later, one after the other.
  await renew(cluster, ownNamespace, 'archwright-ca');
  t.not((await issued('archwright-ca')).certificate.id, ca.id, 'the authority is renewed');
  await more();
  for (const name of Object.values(leaves)) {
    await renew(cluster, ownNamespace, name);
    await untilPresented();
    await more();
  }
  await untilTrusted();
  over.abort();
  await asking;
  t.ok(requests > 50, `${requests} requests`);
  t.strictSame(failed, [], 'every request gets a response while certificates and authorities are replaced');
  await load.end();

  // Another authority at once: components with a new Secret do not trust those with an old one.
  await lose('archwright-ca');
  t.notOk(isIssuedBy((await issued('archwright-ca')).certificate, ca), 'with another key');
  await renewAll();
  await untilTrusted();

  const corporate = await createCa('corporate root');
  const give = (name: string, data: object): Promise<unknown> =>
    cluster.make('Secret', `${certManagerNamespace}/${name}`, { type: 'kubernetes.io/tls', data });
  const encode = (text: string): string => Buffer.from(text).toString('base64');
  await give('root', { 'tls.crt': encode(corporate.cert), 'tls.key': encode(corporate.key) });
  await cluster.applyYaml(issuers);
  await untilIssued(cluster, certManagerNamespace, 'intermediate', 0);
  const { data: { 'tls.crt': cert, 'tls.key': key } = {} } = await cluster.get<Secret>(
    paths.secrets(certManagerNamespace, 'intermediate'),
  );
  await give('without-root', { 'tls.crt': cert, 'tls.key': key });
  for (const [issuer, shows, trusts] of [
    ['root', [own], [root]],
    ['intermediate', [own, intermediate], [root]],
    ['without-root', [own, intermediate], [intermediate]],
  ] as const) {
    const { revision = 0 } = (await untilIssued(cluster, ownNamespace, 'archwright-ca', 0)).status ?? {};
    await installed.apply({ certManager: { issuerRef: { kind: 'ClusterIssuer', name: issuer } } });
    await untilIssued(cluster, ownNamespace, 'archwright-ca', revision);
    await renewAll();
    for (const leaf of Object.keys(leaves)) {
      const { certificate, intermediates, bundle } = await issued(leaf);
      const subjects = [intermediates, bundle].map((all) => all.map(({ x509 }) => x509.subject));
      t.strictSame([certificate.x509.issuer, ...subjects], [own, shows, trusts], `${issuer}: ${leaf}`);
    }
    await untilTrusted();
    await until(isAdmitted, 'the API server trusts the webhook');
    await cluster.create(podOf(issuer, images.push(issuer, ['arm64'])));
    t.equal(await nodeOf(cluster, issuer), 'arm64-0', 'a pod is placed through the webhook');
  }
});
