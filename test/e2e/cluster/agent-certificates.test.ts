/**
 * Certificates of the agents on a real API server: real processes with real tokens that are bound to pods on nodes, and the rights and policies
 * of `deploy/archwright.yaml`. A token of one node's agent gives no certificate of another node.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import t from 'tap';
import { createRequest } from '../../../daemon/certificate/signing-request.ts';
import { openConnection } from '../../../src/fleet/agents/connection.ts';
import { agentNameOn, agentSigner, agentUsages } from '../../../src/fleet/agents/identity.ts';
import type { KubeClient } from '../../../src/kube/api/client.ts';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { ownNamespace, startAgent, startController, type TlsDirs } from './archwright.ts';
import { clientOf, patience, startCluster, type Cluster } from './harness.ts';
import { mount } from './issued.ts';
import { shortLease } from './start-archwright.ts';
import { waitFor } from './watch.ts';

const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const accounts = `/api/v1/namespaces/${ownNamespace}/serviceaccounts`;
const log = createLog({ level: 'silent' });

/** No files: every process gets its certificates from the controller. */
const noTls: TlsDirs = { webhookCa: '', webhook: '', agent: '', webhookClient: '', controllerClient: '' };

interface SigningRequest extends KubeObject {
  readonly status?: {
    readonly certificate?: string;
    readonly conditions?: readonly { readonly type: string; readonly message: string }[];
  };
}

/** Accounts, roles and policies as they are installed. */
async function install(cluster: Cluster): Promise<void> {
  await cluster.createNamespace(ownNamespace);
  const kinds = /^(?:ServiceAccount|(?:Cluster)?Role(?:Binding)?|ValidatingAdmissionPolicy(?:Binding)?)$/;
  const manifests = await readFile(new URL('../../../deploy/archwright.yaml', import.meta.url), 'utf8');
  const objects = parseAllDocuments(manifests).map(
    (document) => document.toJS() as KubeObject & { kind?: string },
  );
  const some = objects.filter(({ kind = '' }) => kinds.test(kind));
  await cluster.applyYaml(some.map((object) => stringify(object)).join('---\n'));
}

/** A kubeconfig with a token of a service account. @param pod the pod that the token is bound to */
async function tokenOf(cluster: Cluster, account: string, pod?: KubeObject): Promise<string> {
  const { name, uid } = pod?.metadata ?? {};
  const spec = pod ? { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid } } : {};
  const { status } = await cluster.post<{ readonly status: { readonly token: string } }>(
    `${accounts}/${account}/token`,
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec },
  );
  const path = join(cluster.directory, `${account}-${name ?? 'unbound'}.kubeconfig`);
  const { server, identities } = cluster;
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority': identities.caFile } }],
    users: [{ name: 'u', user: { token: status.token } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  };
  await writeFile(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}

async function putAgent(cluster: Cluster, node: string): Promise<KubeObject> {
  return cluster.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `agent-on-${node}`, namespace: ownNamespace },
    spec: {
      nodeName: node,
      serviceAccountName: 'archwright-agent',
      containers: [{ name: 'agent', image: 'agent:1' }],
    },
  });
}

function request(text: string, more: object = {}): object {
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { generateName: 'attack-' },
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
  const [here, there] = ['amd64-0', 'amd64-1'];
  await install(cluster);
  const token = await tokenOf(cluster, 'archwright-agent', await putAgent(cluster, here));
  await putAgent(cluster, there);
  const controller = await startController(cluster, {
    tls: noTls,
    settings: {
      ...shortLease,
      certificates: 'builtin',
      'webhook-names': '127.0.0.1',
      kubeconfig: await tokenOf(cluster, 'archwright-controller'),
    },
  });
  const authority = await mount(t, cluster, 'archwright-agent-tls', 0);
  const start = async (name: string, node: string, kubeconfig: string, mayEnd = false) => {
    const dir = join(cluster.directory, 'own', name);
    await mkdir(dir, { recursive: true });
    const settings = { 'tls-dir': dir, 'agent-authority-dir': authority, 'node-name': node, kubeconfig };
    return startAgent(cluster, { name, tls: { ...noTls, agent: dir }, settings, mayEnd });
  };
  const agent = await start('agent-0', here, token);
  const dir = await mount(t, cluster, 'archwright-controller-client-tls', 0);
  let node = here;
  const connection = await openConnection({ dir, log, serverNameOf: () => agentNameOn(node) });
  t.teardown(() => connection.close());
  const ask = () => connection.json(agent.url, '/v1/info', { signal: patience(), maxBytes: 10_000 });
  t.match(await ask(), { nodeName: here });
  node = there;
  await t.rejects(ask(), /altnames/i, 'it is not the agent of another node');

  await t.test('an agent with the token of another node gets no certificate', async (t) => {
    // It ends with the cluster.
    start('agent-1', there, token, true).catch(() => undefined);
    const denied = await refusedRequest(cluster.client);
    t.equal(denied, `the token is of node ${here}: only the name ${agentNameOn(here)}`);
  });

  await t.test('what a stolen token of an agent cannot do', async (t) => {
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
    t.match(found?.status, { conditions: [{ type: 'Denied' }] });
    t.equal(found?.status?.certificate, undefined);
    const kubelet = { signerName: 'kubernetes.io/kube-apiserver-client-kubelet', usages: ['client auth'] };
    await t.rejects(create(request(createRequest(here).request, kubelet)), { code: 'forbidden' });
    const client = { usages: ['digital signature', 'client auth'] };
    const asClient = await create(request(createRequest(here).request, client));
    const answer = await waitFor<SigningRequest>(
      cluster.client,
      `${requests}/${asClient.metadata?.name ?? ''}`,
      (object) => isAnswered(object),
    );
    t.match(answer?.status, { conditions: [{ type: 'Denied' }] });
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

  await t.test('without a controller a restarted agent keeps its certificate', async (t) => {
    await controller.process.stop();
    await agent.process.stop();
    const { url } = await start('agent-0', here, token);
    node = here;
    t.match(await connection.json(url, '/v1/info', { signal: patience(), maxBytes: 10_000 }), {
      nodeName: here,
    });
  });
});

function isAnswered(object: SigningRequest | undefined): boolean {
  return object?.status?.certificate !== undefined || (object?.status?.conditions ?? []).length > 0;
}

/** The first denied request. @returns why */
async function refusedRequest(client: KubeClient): Promise<string> {
  for (const end = performance.now() + 60_000; performance.now() < end;) {
    const { items } = await client.get<{ readonly items: readonly SigningRequest[] }>(requests, {
      signal: patience(),
    });
    const denied = items
      .flatMap(({ status }) => status?.conditions ?? [])
      .find(({ type }) => type === 'Denied');
    if (denied) return denied.message;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error('no request was denied');
}
