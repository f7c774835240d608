/** With cert-manager, no pod or request fails while certificates are lost, renewed and replaced. */
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { isIssuedBy, sameCertificates } from '../../../src/certificates/pem.ts';
import type { Secret } from '../../../src/kube/api/objects.ts';
import { ownNamespace } from './archwright/archwright.ts';
import { ownAddress } from './control-plane/ports.ts';
import { startLoad } from './faults/pod-group.ts';
import {
  clientSecrets,
  install,
  leaves,
  leafSecrets,
  type Installed,
  type LeafSecret,
} from './cert-manager/installed.ts';
import { renew, untilIssued } from './cert-manager/program.ts';
import { renewAll, untilPresented, untilTrusted } from './cert-manager/settled.ts';
import { paths } from '../../../src/kube/api/paths.ts';

const server = '1.3.6.1.5.5.7.3.1';
const client = '1.3.6.1.5.5.7.3.2';

/** Subject, names and usage of the certificates of docs/operate/certificates.md. */
const promised: Readonly<
  Record<LeafSecret, readonly [string | undefined, string | undefined, readonly string[]]>
> = {
  'archwright-webhook-tls': [
    undefined,
    'DNS:archwright-webhook.archwright.svc, DNS:archwright-webhook.archwright.svc.cluster.local',
    [server],
  ],
  'archwright-agent-tls': [undefined, 'DNS:archwright-agent', [server]],
  'archwright-webhook-client-tls': ['CN=archwright-webhook', undefined, [client]],
  'archwright-controller-client-tls': ['CN=archwright-controller', undefined, [client]],
};

const skip = ownAddress === undefined && 'this machine has no address that a Service could have';

void t.test('archwright works with certificates of cert-manager', { skip }, async (t) => {
  const installed = await install(t);
  const { cluster, issued } = installed;

  const ca = await issued('archwright-ca');
  t.equal(ca.certificate.x509.subject, 'CN=archwright-ca');
  t.equal(ca.certificate.x509.ca, true);
  for (const name of leafSecrets) {
    const { certificate, intermediates, bundle } = await issued(name);
    const { x509 } = certificate;
    const { subject, subjectAltName, keyUsage, ca: isCa } = x509;
    t.match([subject, subjectAltName, keyUsage, isCa], [...promised[name], false], name);
    t.equal(x509.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1');
    t.ok(isIssuedBy(certificate, ca.certificate));
    t.same(intermediates, []);
    t.ok(sameCertificates(bundle, [ca.certificate]), 'only the CA of archwright is trusted');
  }
  await untilTrusted(installed);
  const load = startLoad(t, installed);
  const requests = startRequests(t, installed);

  const lost = await issued('archwright-agent-tls');
  await lose(installed, 'archwright-agent-tls');
  t.not(
    (await issued('archwright-agent-tls')).certificate.id,
    lost.certificate.id,
    'a lost certificate is issued again',
  );
  await renewAll(installed);
  await untilPresented(installed);
  // Each is reissued after ten seconds; cert-manager's minimum lifetime is an hour.
  await installed.apply({ duration: '1h', renewBefore: '59m50s' });
  for (const name of Object.values(leaves)) await untilIssued(cluster, ownNamespace, name, 3);
  await installed.apply({});
  for (const name of Object.values(leaves)) await untilIssued(cluster, ownNamespace, name, 4);
  await untilPresented(installed);
  t.same(requests.failed(), [], 'every request gets a response while certificates are replaced');

  // As at its renewal time: the four leaves are renewed later, one after the other.
  await renew(cluster, ownNamespace, 'archwright-ca');
  t.not((await issued('archwright-ca')).certificate.id, ca.certificate.id, 'the authority is renewed');
  await requests.more(10);
  for (const name of Object.values(leaves)) {
    await renew(cluster, ownNamespace, name);
    await untilPresented(installed);
    await requests.more(10);
  }
  await untilTrusted(installed);
  t.same(requests.failed(), [], 'every request gets a response while both authorities are in use');

  // Another authority at once: components with a new Secret do not trust those with an old one.
  await lose(installed, 'archwright-ca');
  const { certificate } = await issued('archwright-ca');
  t.notOk(isIssuedBy(certificate, ca.certificate), 'with another key');
  await renewAll(installed);
  await untilTrusted(installed);
  await requests.more(20);
  t.comment(`${requests.failed().length} of ${requests.count()} requests got no response`);
  const failed = requests.failed().length;
  await requests.more(20);
  t.equal(requests.failed().length, failed, 'then all components trust each other');
  await requests.end();
  await installed.pods.until('enough pods were created', (now) => now.size > 101);
  await load.end();
});

async function lose({ cluster }: Installed, secretName: string): Promise<void> {
  const path = paths.secrets(ownNamespace, secretName);
  await cluster.delete(path);
  await cluster.waitFor<Secret>(path, (now) => now?.data?.['tls.crt'] !== undefined);
}

function startRequests(t: Test, { dirs, askAgent }: Installed) {
  const ending = new AbortController();
  t.teardown(() => ending.abort());
  const failed: string[] = [];
  const counts = new Map<LeafSecret, number>();
  const ask = async (name: LeafSecret): Promise<void> => {
    while (!ending.signal.aborted) {
      await askAgent(dirs[name]).catch((error: unknown) => failed.push(`${name}: ${String(error)}`));
      counts.set(name, (counts.get(name) ?? 0) + 1);
      await pause(50);
    }
  };
  const asking = clientSecrets.map((name) => ask(name));
  return {
    failed: (): readonly string[] => failed,
    count: (): number => [...counts.values()].reduce((sum, count) => sum + count, 0),
    more: async (each: number): Promise<void> => {
      const before = new Map(counts);
      while ([...counts].some(([name, count]) => count < (before.get(name) ?? 0) + each)) await pause(50);
    },
    end: async (): Promise<void> => {
      ending.abort();
      await Promise.all(asking);
    },
  };
}
