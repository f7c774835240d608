/**
 * The smallest control plane that a kubelet with pull secrets needs: etcd and an API server. Pods are made with their node, so
 * there is no scheduler, and service accounts by hand, so there are no controllers. Who asks is told by static tokens; everybody
 * may do everything.
 */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCa } from '../../support/certificates.ts';
import { connectKube, type KubeApi } from './kube-api.ts';
import { ready, start } from './processes.ts';
import type { Programs } from './programs.ts';

export interface ControlPlane {
  readonly api: KubeApi;
  /** For the kubelet. */
  readonly kubeconfig: string;
}

const address = '10.99.0.1';
const directory = '/tmp/control-plane';
const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };

/** Starts both. They end with the box. */
export async function startControlPlane(programs: Programs, nodeName: string): Promise<ControlPlane> {
  mkdirSync(directory);
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  const ca = await createCa('control plane');
  const serving = await ca.issue({ cn: 'kube-apiserver', ip: [address], dns: ['kubernetes.default.svc'] });
  const accounts = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const signingKey = file('sa.key', String(accounts.privateKey.export({ type: 'pkcs8', format: 'pem' })));

  const peer = `http://${address}:2380`;
  const client = `http://${address}:2379`;
  const etcd = start(
    'etcd',
    programs.etcd,
    [
      '--unsafe-no-fsync',
      `--data-dir=${join(directory, 'etcd')}`,
      ...['listen-client-urls', 'advertise-client-urls'].map((flag) => `--${flag}=${client}`),
      ...['listen-peer-urls', 'initial-advertise-peer-urls'].map((flag) => `--${flag}=${peer}`),
      `--initial-cluster=default=${peer}`,
    ],
    { env },
  );
  await ready(etcd, async () => (await fetch(`${client}/health`)).ok);

  const server = start(
    'kube-apiserver',
    programs['kube-apiserver'],
    [
      `--etcd-servers=${client}`,
      `--bind-address=${address}`,
      `--advertise-address=${address}`,
      '--endpoint-reconciler-type=none',
      '--service-cluster-ip-range=10.96.0.0/16',
      '--authorization-mode=AlwaysAllow',
      `--token-auth-file=${file('tokens.csv', `admin,admin,admin,system:masters\nnode,system:node:${nodeName},node,system:nodes\n`)}`,
      `--tls-cert-file=${file('tls.crt', serving.cert)}`,
      `--tls-private-key-file=${file('tls.key', serving.key)}`,
      '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
      `--service-account-key-file=${file('sa.pub', String(accounts.publicKey.export({ type: 'spki', format: 'pem' })))}`,
      `--service-account-signing-key-file=${signingKey}`,
    ],
    { env },
  );
  const url = `https://${address}:6443`;
  const api = connectKube(url, ca.cert, 'admin');
  await ready(server, async () => (await api.call('GET', '/readyz')) === 'ok');
  await ready(server, async () => (await api.call('GET', '/api/v1/namespaces/default')) !== undefined);
  // Without its default service account a namespace takes no pods.
  await api.call('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } });

  const kubeconfig = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'box',
        cluster: { server: url, 'certificate-authority-data': Buffer.from(ca.cert).toString('base64') },
      },
    ],
    users: [{ name: 'node', user: { token: 'node' } }],
    contexts: [{ name: 'box', context: { cluster: 'box', user: 'node' } }],
    'current-context': 'box',
  });
  return { api, kubeconfig: file('kubelet.kubeconfig', kubeconfig) };
}
