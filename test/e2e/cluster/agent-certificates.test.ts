/**
 * Agent certificates on a real API server: real processes, real tokens bound to pods on nodes, and the rights
 * and policies of `deploy/archwright.yaml`. A token of one node's agent gives no certificate of another node.
 */
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
import { clientOf, patience, startCluster } from './harness.ts';
import { mount, writeWebhooksFile } from './archwright/issued.ts';
import { installRights, tokenOf } from './archwright/accounts.ts';
import { freePort } from './control-plane/ports.ts';
import { untilRefused } from './control-plane/rights.ts';
import { shortLease } from './archwright/start.ts';
import { silentLog } from '../../support/captured.ts';
import { like } from '../../support/like.ts';

const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const [here, there] = ['amd64-0', 'amd64-1'] as const;

interface SigningRequest extends KubeObject {
  readonly status?: {
    readonly certificate?: string;
    readonly conditions?: readonly { readonly type: string; readonly message: string }[];
  };
}

let slot = 0;
/** The name that the agent itself has chosen. */
let taken: string | undefined;

function nextName(): string {
  const name = agentRequestName(here, slot++);
  return name === taken ? nextName() : name;
}

/** For a node, by the next name of the stolen token's node. */
function requestFor(node: string, more: object = {}, metadata: object = {}, padding = ''): object {
  const request = Buffer.from(createRequest(node).request + padding).toString('base64');
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: nextName(), ...metadata },
    spec: { signerName: agentSigner, request, usages: agentUsages, ...more },
  };
}

t.test('each agent has a certificate for its own node', async (t) => {
  const cluster = await startCluster({ nodes: { amd64: 2 } }, t);
  await cluster.createNamespace(ownNamespace);
  await installRights(cluster, 'deploy/archwright.yaml');
  const containers = [{ name: 'agent', image: 'agent:1' }];
  const spec = { nodeName: here, serviceAccountName: 'archwright-agent', containers };
  const pod = await cluster.make('Pod', `${ownNamespace}/agent-on-${here}`, { spec });
  const token = await tokenOf(cluster, 'archwright-agent', pod);
  const stolen = await clientOf(token);
  t.teardown(() => stolen.close());
  const anyName = requestFor(here, {}, { name: undefined, generateName: 'early-' });
  const dryRun = () => stolen.create(requests, anyName, { signal: patience(), query: { dryRun: 'All' } });
  await t.rejects(untilRefused(dryRun), { code: 'forbidden' }, 'policies are enforced');
  const controllerToken = await tokenOf(cluster, 'archwright-controller');
  const port = await freePort();
  const common = {
    certificates: 'builtin',
    'webhooks-file': await writeWebhooksFile(cluster, 'https://127.0.0.1:1'),
    agents: `https://127.0.0.1:${port}`,
    kubeconfig: controllerToken,
  };
  // Agents with shorter certificates move to another CA sooner.
  const settings = { ...common, 'certificate-time': '1h' };
  const controller = await startController(cluster, { tls: noTls, tuning: shortLease, settings });
  const authority = await mount(t, cluster, 'archwright-agent-tls', 0);
  const own = join(cluster.directory, 'own');
  await mkdir(own);
  const start = () => {
    const settings = {
      'tls-dir': own,
      'agent-authority-dir': authority,
      'node-name': here,
      kubeconfig: token,
    };
    return startAgent(cluster, { tls: { ...noTls, agent: own }, settings, port });
  };
  let agent = await start();
  taken = (await cluster.list(requests))[0]?.metadata?.name;
  const dir = await mount(t, cluster, 'archwright-controller-client-tls', 0);
  let node: string = here;
  const connection = createConnection({
    tls: await openTlsFiles({ dir, use: 'client', ca: true, log: silentLog }),
    serverNameOf: () => agentNameOn(node),
  });
  t.teardown(() => connection.close());
  const ask = () => connection.json(agent.url, '/v1/info', { signal: patience(), maxBytes: 10_000 });
  like(t, await ask(), { nodeName: here });
  node = there;
  await t.rejects(ask(), /altnames/i, 'it is not the agent of another node');

  await t.test('a stolen token of an agent gives no other certificate', async (t) => {
    const create = (body: object) => stolen.create<SigningRequest>(requests, body, { signal: patience() });
    /** Waits until the request is answered: it is denied. */
    const isDenied = async (body: object, message?: string): Promise<string> => {
      const path = `${requests}/${(await create(body)).metadata?.name}`;
      const found = await cluster.waitFor<SigningRequest>(
        path,
        (now) => now?.status?.conditions !== undefined,
      );
      like(t, found?.status, { conditions: [{ type: 'Denied', ...(message && { message }) }] });
      t.equal(found?.status?.certificate, undefined);
      return path;
    };
    const message = `the token belongs to node ${here}: only the name ${agentNameOn(here)}`;
    const path = await isDenied(requestFor(there), message);
    const conditions = [{ type: 'Approved', status: 'True', reason: 'x', message: 'x' }];
    const approve = stolen.patch(
      `${path}/approval`,
      { type: 'merge', body: { status: { conditions } } },
      { signal: patience() },
    );
    await t.rejects(approve, { code: 'forbidden' }, 'approve its own request');
    const kubelet = { signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages: ['client auth'] };
    await t.rejects(create(requestFor(here, kubelet)), { code: 'forbidden' });
    // The API server fills in the node itself.
    await isDenied(
      requestFor(there, {
        username: 'system:serviceaccount:archwright:archwright-agent',
        extra: { 'authentication.kubernetes.io/node-name': [there] },
      }),
    );
  });

  await t.test('attack: certificate requests cannot fill the API server', async (t) => {
    const create = (metadata: object, padding = '') =>
      stolen.create(requests, requestFor(here, {}, metadata, padding), { signal: patience() });
    for (const [what, metadata, padding] of [
      ['any name', { name: undefined, generateName: 'attack-' }],
      ['a name of another node', { name: agentRequestName(there, 0) }],
      ['one more name', { name: agentRequestName(here, maxAgentRequests) }],
      ['a finalizer, which would keep it', { finalizers: ['x.example/stuck'] }],
      ['annotations', { annotations: { a: 'b' } }],
      ['a large text', {}, '\n'.repeat(5000)],
    ] as const)
      await t.rejects(create(metadata, padding), { code: 'forbidden' }, what);
    const names = Array.from({ length: maxAgentRequests }, (_, number) => agentRequestName(here, number));
    for (const name of names)
      await create({ name }).catch((error: unknown) => like(t, error, { code: 'conflict' }));
    t.equal((await cluster.list(requests)).length, maxAgentRequests);
  });

  await t.test('without a controller a restarted agent keeps its certificate', async (t) => {
    await controller.process.stop();
    await agent.process.stop();
    agent = await start();
    node = here;
    like(t, await ask(), { nodeName: here });
  });

  await t.test('while the CA rotates, the agent moves to the new one and every call succeeds', async (t) => {
    // As an hour after they were answered.
    for (const { metadata } of await cluster.list(requests))
      await cluster.delete(`${requests}/${metadata?.name}`);
    const certificate = async (file: string) => new X509Certificate(await readFile(join(own, file), 'utf8'));
    const [before, oldCa] = [await certificate('tls.crt'), await certificate('ca.crt')];
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
      return !(await readFile(join(own, 'ca.crt'), 'utf8')).includes(oldCa.toString().trim());
    };
    await until(isOver, 'the old CA is gone', 180_000);
    const [after, ca] = [await certificate('tls.crt'), await certificate('ca.crt')];
    t.ok(after.verify(ca.publicKey), 'a certificate of the new CA, and the old one is gone');
    t.notOk(after.verify(oldCa.publicKey));
    like(t, await ask(), { nodeName: here });
    t.comment(`${calls} calls`);
  });
});
