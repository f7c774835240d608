/**
 * Agent certificates on a real API server: real processes, real tokens bound to pods on nodes, and the rights
 * and policies of `deploy/archwright.yaml`. A token of one node's agent gives no certificate of another node.
 */
import { writeWebhooksFile } from './archwright/issued.ts';
import { X509Certificate } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { createRequest } from '../../../daemon/certificate/signing-request.ts';
import { createConnection } from '../../../src/fleet/connection.ts';
import { openTlsFiles } from '../../../src/serving/tls-files.ts';
import {
  agentNameOn,
  agentRequestName,
  agentSigner,
  agentUsages,
  maxAgentRequests,
} from '../../../src/certificates/agent-names.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { until } from '../../support/until.ts';
import { noTls, ownNamespace, startAgent, startController } from './archwright/archwright.ts';
import { clientOf, patience, startCluster, type Cluster } from './harness.ts';
import { mount } from './archwright/issued.ts';
import { installRights, tokenOf } from './archwright/accounts.ts';
import { freePort } from './control-plane/ports.ts';
import { untilRefused } from './control-plane/rights.ts';
import { shortLease } from './archwright/start.ts';
import { waitFor } from './control-plane/watch.ts';
import { silentLog } from '../../support/captured.ts';

const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const log = silentLog;
const [here, there] = ['amd64-0', 'amd64-1'] as const;

interface SigningRequest extends KubeObject {
  readonly status?: {
    readonly certificate?: string;
    readonly conditions?: readonly { readonly type: string; readonly message: string }[];
  };
}

async function putAgent(cluster: Cluster, node: string): Promise<KubeObject> {
  return cluster.make('Pod', `${ownNamespace}/agent-on-${node}`, {
    spec: {
      nodeName: node,
      serviceAccountName: 'archwright-agent',
      containers: [{ name: 'agent', image: 'agent:1' }],
    },
  });
}

let slot = 0;
/** The name that the agent itself has chosen. */
let taken: string | undefined;

function nextName(): string {
  const name = agentRequestName(here, slot++);
  return name === taken ? nextName() : name;
}

/** By the next name of the node. */
function request(text: string, more: object = {}, metadata: object = {}): object {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: nextName(), ...metadata },
    spec: {
      signerName: agentSigner,
      request: Buffer.from(text).toString('base64'),
      usages: agentUsages,
      ...more,
    },
  };
}

t.test('each agent has a certificate for its own node', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 2 } }, t);
  await cluster.createNamespace(ownNamespace);
  await installRights(cluster, 'deploy/archwright.yaml');
  const token = await tokenOf(cluster, 'archwright-agent', await putAgent(cluster, here));
  await putAgent(cluster, there);
  const early = await clientOf(token);
  t.teardown(() => early.close());
  const anyName = request(createRequest(here).request, {}, { name: undefined, generateName: 'early-' });
  const dryRun = () => early.create(requests, anyName, { signal: patience(), query: { dryRun: 'All' } });
  await t.rejects(untilRefused(dryRun), { code: 'forbidden' }, 'policies are enforced');
  const controllerToken = await tokenOf(cluster, 'archwright-controller');
  const port = await freePort();
  const common = {
    certificates: 'builtin',
    'webhooks-file': await writeWebhooksFile(cluster, 'https://127.0.0.1:1'),
    agents: `https://127.0.0.1:${port}`,
    kubeconfig: controllerToken,
  };
  const controller = await startController(cluster, {
    tls: noTls,
    tuning: shortLease,
    settings: {
      ...common,
      // Agents with shorter certificates move to another CA sooner.
      'certificate-time': '1h',
    },
  });
  const authority = await mount(t, cluster, 'archwright-agent-tls', 0);
  const start = async (name: string, node: string, kubeconfig: string, mayEnd = false) => {
    const dir = join(cluster.directory, 'own', name);
    await mkdir(dir, { recursive: true });
    const settings = { 'tls-dir': dir, 'agent-authority-dir': authority, 'node-name': node, kubeconfig };
    const own = node === here ? { port } : {};
    return startAgent(cluster, { name, tls: { ...noTls, agent: dir }, settings, mayEnd, ...own });
  };
  let agent = await start('agent-0', here, token);
  taken = (await cluster.list(requests))[0]?.metadata?.name;
  const dir = await mount(t, cluster, 'archwright-controller-client-tls', 0);
  let node: string = here;
  const connection = createConnection({
    tls: await openTlsFiles({ dir, use: 'client', ca: true, log }),
    serverNameOf: () => agentNameOn(node),
  });
  t.teardown(() => connection.close());
  const ask = () => connection.json(agent.url, '/v1/info', { signal: patience(), maxBytes: 10_000 });
  t.match(await ask(), { nodeName: here });
  node = there;
  await t.rejects(ask(), /altnames/i, 'it is not the agent of another node');

  await t.test('an agent with the token of another node gets no certificate', async (t) => {
    // It ends with the cluster.
    start('agent-1', there, token, true).catch(() => undefined);
    const file = join(cluster.logs, 'agent-1.log');
    const refusal = 'an agent requests certificates by the names of its own node';
    const isRefused = async () => (await readFile(file, 'utf8').catch(() => '')).includes(refusal);
    await until(isRefused, 'the refusal', 60_000);
    t.equal((await cluster.list(requests)).length, 1, 'its request is not stored');
  });

  await t.test('a stolen token of an agent gives no other certificate', async (t) => {
    const stolen = await clientOf(token);
    t.teardown(() => stolen.close());
    const create = (body: object) => stolen.create<SigningRequest>(requests, body, { signal: patience() });
    const patch = (path: string, body: object) =>
      stolen.patch(path, { type: 'merge', body }, { signal: patience() });
    const { metadata } = await create(request(createRequest(there).request));
    const path = `${requests}/${metadata?.name ?? ''}`;
    const approved = {
      status: { conditions: [{ type: 'Approved', status: 'True', reason: 'x', message: 'x' }] },
    };
    await t.rejects(patch(`${path}/approval`, approved), { code: 'forbidden' }, 'approve its own request');
    const found = await waitFor<SigningRequest>(cluster.client, path, (object) => isAnswered(object));
    const message = `the token belongs to node ${here}: only the name ${agentNameOn(here)}`;
    t.match(found?.status, { conditions: [{ type: 'Denied', message }] });
    t.equal(found?.status?.certificate, undefined);
    const kubelet = { signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages: ['client auth'] };
    await t.rejects(create(request(createRequest(here).request, kubelet)), { code: 'forbidden' });
    const forged = {
      username: 'system:serviceaccount:archwright:archwright-agent',
      extra: { 'authentication.kubernetes.io/node-name': [there] },
    };
    const { metadata: made } = await create(request(createRequest(there).request, forged));
    const kept = await waitFor<SigningRequest>(cluster.client, `${requests}/${made?.name ?? ''}`, (object) =>
      isAnswered(object),
    );
    t.match(kept?.status, { conditions: [{ type: 'Denied' }] }, 'the API server fills in the node itself');
  });

  await t.test('attack: certificate requests cannot fill the API server', async (t) => {
    const stolen = await clientOf(token);
    t.teardown(() => stolen.close());
    const { request: text } = createRequest(here);
    const create = (metadata: object, body = text) =>
      stolen.create(requests, request(body, {}, metadata), { signal: patience() });
    for (const [what, metadata, body] of [
      ['any name', { name: undefined, generateName: 'attack-' }],
      ['a name of another node', { name: agentRequestName(there, 0) }],
      ['one more name', { name: agentRequestName(here, maxAgentRequests) }],
      ['a finalizer, which would keep it', { finalizers: ['x.example/stuck'] }],
      ['annotations', { annotations: { a: 'b' } }],
      ['a large text', {}, `${text}${'\n'.repeat(5000)}`],
    ] as const)
      await t.rejects(create(metadata, body), { code: 'forbidden' }, what);
    const names = Array.from({ length: maxAgentRequests }, (_, number) => agentRequestName(here, number));
    for (const name of names)
      await create({ name }).catch((error: unknown) => t.match(error, { code: 'conflict' }));
    t.equal((await cluster.list(requests)).length, maxAgentRequests);
  });

  await t.test('without a controller a restarted agent keeps its certificate', async (t) => {
    await controller.process.stop();
    await agent.process.stop();
    agent = await start('agent-0', here, token);
    node = here;
    t.match(await ask(), { nodeName: here });
  });

  await t.test('while the CA rotates, the agent moves to the new one and every call succeeds', async (t) => {
    // As an hour after they were answered.
    for (const { metadata } of await cluster.list(requests))
      await cluster.delete(`${requests}/${metadata?.name}`);
    const own = async (file: string) => readFile(join(cluster.directory, 'own', 'agent-0', file), 'utf8');
    const before = new X509Certificate(await own('tls.crt'));
    const oldCa = new X509Certificate(await own('ca.crt'));
    t.ok(before.verify(oldCa.publicKey));
    // The CA is valid for longer than a new one, so it is replaced at once.
    await startController(cluster, {
      tls: noTls,
      name: 'controller-2',
      tuning: { ...shortLease, certificateMs: 120_000, caMs: 240_000 },
      settings: { ...common, 'certificate-time': '2m' },
    });
    let calls = 0;
    const isOver = async () => {
      await ask();
      calls += 1;
      return !(await own('ca.crt')).includes(oldCa.toString().trim());
    };
    await until(isOver, 'the old CA is gone', 180_000);
    const [after, ca] = [new X509Certificate(await own('tls.crt')), new X509Certificate(await own('ca.crt'))];
    t.ok(after.verify(ca.publicKey), 'a certificate of the new CA, and the old one is gone');
    t.notOk(after.verify(oldCa.publicKey));
    t.match(await ask(), { nodeName: here });
    t.comment(`${calls} calls`);
  });
});

function isAnswered(object: SigningRequest | undefined): boolean {
  return object?.status?.certificate !== undefined || (object?.status?.conditions ?? []).length > 0;
}
