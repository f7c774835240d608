/**
 * Attack: with its own agent's token, a node requests a certificate of another node's agent, or of another
 * role.
 */
import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import t from 'tap';
import * as x509 from '@peculiar/x509';
import { agentRequestName, maxAgentRequests } from '../../../../src/certificates/agent-names.ts';
import { until } from '../../../support/until.ts';
import { requestsPath, startWorld, type Token } from './world.ts';
import { like } from '../../../support/like.ts';

const counter = 'archwright_agent_certificate_requests_total';
const p256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

interface Wanted {
  readonly subject?: string;
  readonly names?: readonly x509.JsonGeneralName[];
  readonly extensions?: readonly x509.Extension[];
  readonly algorithm?: typeof p256;
}

async function requestWith(wanted: Wanted): Promise<string> {
  const { subject = 'CN=archwright-agent', names = [{ type: 'dns', value: 'n1.archwright-agent' }] } = wanted;
  const { algorithm = p256, extensions = [] } = wanted;
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: subject,
    keys: await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']),
    signingAlgorithm: algorithm,
    extensions: [new x509.SubjectAlternativeNameExtension([...names]), ...extensions],
  });
  return request.toString('pem');
}

/** A request for these DNS names. */
const naming = (...names: string[]): Promise<string> =>
  requestWith({ names: names.map((value) => ({ type: 'dns', value })) });

t.test('an agent gets a certificate for its node and nothing else', async (t) => {
  const world = await startWorld(t);
  const { certificate = '', denied } = await world.answer(world.put({ node: 'n1' }, world.requestFor('n1')));
  t.equal(denied, undefined);
  const made = new X509Certificate(certificate);
  t.equal(made.subject, 'CN=archwright-agent');
  t.equal(made.subjectAltName, 'DNS:n1.archwright-agent, DNS:archwright-agent');
  t.strictSame(made.keyUsage, ['1.3.6.1.5.5.7.3.1']);
  t.notOk(made.ca);
  t.ok(made.verify(world.authority.certificate.x509.publicKey));
  t.ok(made.validToDate.getTime() <= world.authority.certificate.to);
  const reconciles = 'archwright_controller_reconciles_total{feature="agent-certificates",result="success"}';
  await until(async () => (await world.series(reconciles)) === 2, 'the approval is an event');
  t.equal(await world.series(`${counter}{result="issued"}`), 1);
});

t.test('a name that was used before gets an answer again', async (t) => {
  const world = await startWorld(t);
  const name = agentRequestName('n1', 5);
  for (const run of ['first', 'second']) {
    world.put({ node: 'n1' }, world.requestFor('n1'), {}, name);
    t.ok((await world.answer(name)).certificate, run);
    world.store.remove(`${requestsPath}/${name}`);
  }
});

/** The token of the agent of n1 with other claims. */
function withClaims({ node = ['n1'], pod = ['agent-on-n1'], uid = ['uid-agent-on-n1'] }): object {
  const key = (name: string): string => `authentication.kubernetes.io/${name}`;
  return { extra: { [key('node-name')]: node, [key('pod-name')]: pod, [key('pod-uid')]: uid } };
}

t.test('requests for anything else are denied', async (t) => {
  const world = await startWorld(t);
  const name = { type: 'dns', value: 'n1.archwright-agent' } as const;
  const address = { type: 'ip', value: '10.0.0.1' } as const;
  const own = world.requestFor('n1');
  const forged = Buffer.from(x509.PemConverter.decodeFirst(own));
  forged[forged.length - 1] = (forged.at(-1) ?? 0) ^ 1;
  const unsigned = x509.PemConverter.encode(forged, 'CERTIFICATE REQUEST');
  const usages = ['digital signature', 'client auth'];
  const p384 = { ...p256, namedCurve: 'P-384' };
  const authority = [new x509.BasicConstraintsExtension(true)];
  const cases: [what: string, request: string, why: RegExp, more?: object, token?: Token][] = [
    ['the name of another node', world.requestFor('n2'), /the token belongs to node n1/],
    ['the name shared by all agents', await naming('archwright-agent'), /node n1/],
    ['two names', await naming('n1.archwright-agent', 'n2.archwright-agent'), /node n1/],
    ['a wildcard', await naming('*.archwright-agent'), /node n1/],
    ['an address beside its name', await requestWith({ names: [name, address] }), /node n1/],
    ['the role of the webhook', await requestWith({ subject: 'CN=archwright-webhook' }), /subject must be/],
    ['an authority', await requestWith({ extensions: authority }), /node n1/],
    ['a client certificate', own, /only these usages/, { usages }],
    ['more usages', own, /only these usages/, { usages: [...usages, 'server auth'] }],
    ['a key on another curve', await requestWith({ algorithm: p384 }), /P-256/],
    ['a signature by a key other than its own', unsigned, /not signed by a key/],
    ['a body that is no certificate request', 'x', /unreadable/],
    ['a token without a node', own, /not bound/, {}, { node: undefined }],
    ['a token of two nodes', own, /not bound/, withClaims({ node: ['n1', 'n2'] })],
    ['a token without a pod', own, /not bound/, withClaims({ pod: [] })],
    ['a token without the uid of a pod', own, /not bound/, withClaims({ uid: [] })],
  ];
  for (const [what, request, why, more, token = { node: 'n1' }] of cases) {
    const { certificate, denied } = await world.answer(world.put(token, request, more));
    t.equal(certificate, undefined, what);
    like(t, denied, why, what);
  }
  await until(async () => (await world.series(`${counter}{result="refused"}`)) === cases.length);
});

t.test('foreign requests are removed if they have the signer or a name of agents', async (t) => {
  const world = await startWorld(t);
  const signerName = 'kubernetes.io/kubelet-serving';
  const kubelet = { node: 'n2', username: 'system:node:n2' };
  const text = world.requestFor('n1');
  const own = world.put(kubelet, text, { signerName });
  const taken = world.put(kubelet, text, { signerName }, agentRequestName('n1', 0));
  await until(() => world.store.get(`${requestsPath}/${taken}`) === undefined, 'the removal');
  const late = world.put(kubelet, text, {}, agentRequestName('n1', 1));
  await until(() => world.store.get(`${requestsPath}/${late}`) === undefined, 'the removal');
  t.ok(world.store.get(`${requestsPath}/${own}`));
});

t.test("the token's pod must run on the node", async (t) => {
  const world = await startWorld(t);
  const late = world.put({ node: 'n3' }, world.requestFor('n3'));
  const creationTimestamp = new Date(Date.now() - 60_000).toISOString();
  for (const token of [
    { node: 'n1', pod: 'agent-on-n2' },
    { node: 'n1', uid: 'uid-of-an-earlier-pod' },
    { node: 'n9' },
  ]) {
    const name = world.put(token, world.requestFor(token.node));
    const stored = world.store.get(`${requestsPath}/${name}`);
    const metadata = { ...stored?.metadata, creationTimestamp };
    world.store.put(`${requestsPath}/${name}`, { ...stored, metadata });
    t.match((await world.answer(name)).denied, /does not run on node/);
  }
  t.strictSame(world.statusOf(late), {}, 'a new pod may not be in the cache yet');
  world.putAgent('n3');
  t.ok((await world.answer(late)).certificate);
});

t.test('a node that keeps requesting certificates gets few, and does not delay others', async (t) => {
  const world = await startWorld(t);
  const text = world.requestFor('n1');
  const flood = Array.from({ length: 200 }, () => world.put({ node: 'n1' }, text));
  const other = world.put({ node: 'n2' }, world.requestFor('n2'));
  const isAnswered = (name: string): boolean => Object.keys(world.statusOf(name)).length > 0;
  for (const count of [8, 16, 24, maxAgentRequests])
    await world.store.until(() => flood.filter(isAnswered).length >= count, `${count} answers`);
  t.ok((await world.answer(other)).certificate);
  t.equal(flood.filter(isAnswered).length, maxAgentRequests);
  await until(async () => (await world.series(`${counter}{result="issued"}`)) === maxAgentRequests + 1);
});

t.test('without a CA, agents wait for their certificates', async (t) => {
  const world = await startWorld(t);
  const path = '/api/v1/namespaces/archwright/secrets/archwright-ca';
  world.store.remove(path);
  const name = world.put({ node: 'n1' }, world.requestFor('n1'));
  await world.store.until(() => world.store.received(`GET ${path}`).length > 0, 'the leader');
  t.strictSame(world.statusOf(name), {});
  world.putAuthority();
  t.ok((await world.answer(name)).certificate);
});

t.test('without agents, the controller reads no certificate requests, which it may not read', async (t) => {
  const world = await startWorld(t, { agents: [] });
  await world.running;
  t.strictSame(world.store.received(`GET ${requestsPath}`), []);
});
