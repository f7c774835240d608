/** `certManager.issuerRef`: the issuer of archwright's authority, and the resulting trusted authorities. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import type { Secret } from '../../../src/kube/api/objects.ts';
import { createCa } from '../../support/certificates.ts';
import { ownNamespace } from './archwright/archwright.ts';
import { ownAddress } from './control-plane/ports.ts';
import { install, leafSecrets, type Installed } from './cert-manager/installed.ts';
import { certManagerNamespace, untilIssued } from './cert-manager/program.ts';
import { untilAnswered, renewAll, untilTrusted } from './cert-manager/settled.ts';
import { secretTexts } from './archwright/issued.ts';
import { nodeOf, podOf } from './control-plane/pods.ts';
import { paths } from '../../../src/kube/api/paths.ts';

const skip = ownAddress === undefined && 'this machine has no address for an EndpointSlice';
const encode = (text: string): string => Buffer.from(text).toString('base64');
const root = 'CN=corporate root';
const intermediate = 'CN=corporate intermediate';
const own = 'CN=archwright-ca';

const issuers = `
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: { name: root }
spec: { ca: { secretName: root } }
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: { name: intermediate, namespace: ${certManagerNamespace} }
spec:
  isCA: true
  commonName: corporate intermediate
  secretName: intermediate
  privateKey: { algorithm: ECDSA, size: 256 }
  issuerRef: { kind: ClusterIssuer, name: root }
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: { name: intermediate }
spec: { ca: { secretName: intermediate } }
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: { name: without-root }
spec: { ca: { secretName: without-root } }
---
# A foreign certificate of the same issuer, with archwright's name.
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: { name: stranger, namespace: default }
spec:
  commonName: archwright-webhook
  usages: [client auth]
  secretName: stranger
  privateKey: { algorithm: ECDSA, size: 256 }
  issuerRef: { kind: ClusterIssuer, name: root }
`;

/** By docs/operate/certificates.md. */
const cases = [
  { issuer: undefined, shows: [], trusts: [own], stranger: false },
  { issuer: 'root', shows: [own], trusts: [root], stranger: true },
  { issuer: 'intermediate', shows: [own, intermediate], trusts: [root], stranger: true },
  { issuer: 'without-root', shows: [own, intermediate], trusts: [intermediate], stranger: false },
] as const;

void t.test('any issuer can sign the CA of archwright', { skip }, async (t) => {
  const installed = await install(t);
  const { cluster, issued, askAgent, images } = installed;
  const corporate = await createCa('corporate root');
  const give = (name: string, data: object): Promise<unknown> =>
    cluster.make('Secret', `${certManagerNamespace}/${name}`, { type: 'kubernetes.io/tls', data });
  await give('root', { 'tls.crt': encode(corporate.cert), 'tls.key': encode(corporate.key) });
  await cluster.applyYaml(issuers);
  await untilIssued(cluster, certManagerNamespace, 'intermediate', 0);
  await untilIssued(cluster, 'default', 'stranger', 0);
  const { data: { 'tls.crt': cert, 'tls.key': key } = {} } = await cluster.get<Secret>(
    paths.secrets(certManagerNamespace, 'intermediate'),
  );
  await give('without-root', { 'tls.crt': cert, 'tls.key': key });

  let revision = 0;
  for (const { issuer, shows, trusts, stranger } of cases) {
    const name = issuer ?? 'itself';
    if (issuer !== undefined) {
      await installed.apply({ issuerRef: { kind: 'ClusterIssuer', name: issuer } });
      await untilIssued(cluster, ownNamespace, 'archwright-ca', revision);
      await renewAll(installed);
    }
    revision += 1;
    for (const leaf of leafSecrets) {
      const { certificate, intermediates, bundle } = await issued(leaf);
      t.equal(certificate.x509.issuer, own, `${name}: ${leaf}`);
      const subjects = [intermediates, bundle].map((all) => all.map(({ x509 }) => x509.subject));
      t.same(subjects, [shows, trusts], 'the chain that servers send, and the trusted bundle');
    }

    await untilTrusted(installed);
    await untilAnswered(installed);
    await cluster.create(podOf(name, images.push(name, ['s390x'])));
    t.equal(await nodeOf(cluster, name), 's390x-0', 'a pod is placed through the webhook');

    const request = askAgent(await dirOfStranger(installed));
    if (stranger) await t.resolves(request, 'a foreign certificate of the same root is accepted');
    else await t.rejects(request, { code: 'unreachable' }, 'a foreign certificate of the root above is not');
  }
});

async function dirOfStranger({ cluster, issued }: Installed): Promise<string> {
  const texts = await secretTexts(cluster, 'stranger', 'default');
  const { bundle } = await issued('archwright-webhook-client-tls');
  const dir = join(cluster.directory, 'stranger');
  await mkdir(dir, { recursive: true });
  for (const file of ['tls.crt', 'tls.key'])
    await writeFile(join(dir, file), texts[file] ?? '', { mode: 0o600 });
  await writeFile(join(dir, 'ca.crt'), bundle.map(({ pem }) => pem).join(''));
  return dir;
}
