/** A real control plane on loopback; kwok simulates kubelets. Each instance has its own ports and files. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { apiServerProgram, kubernetesPrograms, kwokStages } from '../../programs/kubernetes.ts';
import { createIdentities } from './identities.ts';
import { freePorts } from './ports.ts';
import { httpsStatus, ready, startProcess, type Running } from './processes.ts';

export interface ControlPlaneOptions {
  readonly directory: string;
  /** Requests per second that the scheduler allows itself; its own default is 50. */
  readonly schedulerQps?: number;
  /** Requests per second that each controller allows itself; their own default is 20. */
  readonly controllersQps?: number;
  /** Address of the API server for pods and real kubelets; not loopback. */
  readonly nodeAddress?: string;
  readonly apiServerFlags?: readonly string[];
  /**
   * Kubernetes version (`v1.30.14`) of an API server that runs alone with etcd: objects are validated,
   * admitted and stored, without controllers. Default: everything of the current version runs.
   */
  readonly apiServerOnly?: string;
  /** Whether kwok updates pods as kubelets do. Default: true. Without it pods are only bound. */
  readonly simulatesPods?: boolean;
  /** Whether kwok ends the pods of Jobs as soon as they run. Default: true. */
  readonly endsJobs?: boolean;
}

export type ControlPlane = Awaited<ReturnType<typeof startControlPlane>>;

const names = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kwok'] as const;
type PartName = (typeof names)[number];

const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/nonexistent' };

/**
 * Starts it, in about ten seconds on two cores. Programs that are missing are built, which takes minutes.
 * @throws Error if a component does not become ready; the message has the end of its log
 */
export async function startControlPlane(options: ControlPlaneOptions) {
  const { directory, schedulerQps, controllersQps, nodeAddress, apiServerOnly } = options;
  const programs: Readonly<Partial<Record<PartName, string>>> =
    apiServerOnly === undefined
      ? kubernetesPrograms(names)
      : { ...kubernetesPrograms(['etcd']), 'kube-apiserver': apiServerProgram(apiServerOnly) };
  const stages = apiServerOnly === undefined ? kwokStages() : '';
  const logs = join(directory, 'logs');
  await mkdir(logs, { recursive: true });
  const identities = await createIdentities(join(directory, 'pki'));
  const [etcdPort = 0, peerPort = 0, apiPort = 0, managerPort = 0, schedulerPort = 0] = await freePorts(5);
  const server = `https://127.0.0.1:${apiPort}`;
  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const parts = new Map<PartName, Running>();
  const start = (name: PartName, args: readonly string[]): Running => {
    const running = startProcess({ name, program: programs[name] ?? '', args, env, logs });
    parts.set(name, running);
    return running;
  };
  /** No component needs a graceful shutdown. */
  const stop = async (): Promise<void> => {
    await Promise.all([...parts.values()].map((part) => part.stop()));
  };

  try {
    const peerUrl = `http://127.0.0.1:${peerPort}`;
    const etcd = start('etcd', [
      '--unsafe-no-fsync',
      '--log-level=warn',
      `--data-dir=${join(directory, 'etcd')}`,
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=default=${peerUrl}`,
    ]);
    const serving = await identities.issue('kube-apiserver', {
      cn: 'kube-apiserver',
      ip: ['127.0.0.1', '10.96.0.1', ...(nodeAddress === undefined ? [] : [nodeAddress])],
      dns: ['localhost', 'kubernetes.default.svc'],
    });
    await ready(etcd, async () => (await fetch(`${etcdUrl}/health`)).ok);
    const apiServerFlags = [
      `--etcd-servers=${etcdUrl}`,
      `--bind-address=${nodeAddress === undefined ? '127.0.0.1' : '0.0.0.0'}`,
      `--advertise-address=${nodeAddress ?? '127.0.0.1'}`,
      `--secure-port=${apiPort}`,
      // A loopback address cannot be an endpoint.
      `--endpoint-reconciler-type=${nodeAddress === undefined ? 'none' : 'lease'}`,
      '--service-cluster-ip-range=10.96.0.0/16',
      '--authorization-mode=Node,RBAC',
      '--allow-privileged=true',
      `--client-ca-file=${identities.caFile}`,
      `--tls-cert-file=${serving.cert}`,
      `--tls-private-key-file=${serving.key}`,
      '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
      `--service-account-key-file=${identities.accountPublicKey}`,
      `--service-account-signing-key-file=${identities.accountKey}`,
      ...(options.apiServerFlags ?? []),
    ];
    const startApiServer = async (): Promise<void> => {
      const running = start('kube-apiserver', apiServerFlags);
      const { cert: ca } = identities.ca;
      await ready(running, async () => (await httpsStatus(`${server}/readyz`, { ca })) === 200);
    };
    await startApiServer();
    const plane = { server, identities, parts, startApiServer, stop };
    if (apiServerOnly !== undefined) return plane;

    /** Flags of a component with its own kubeconfig. */
    const ownFlags = async (part: string, port: number): Promise<readonly string[]> => {
      const kubeconfig = await identities.kubeconfig({ cn: `system:${part}` }, server);
      return [
        ...['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map(
          (flag) => `--${flag}=${kubeconfig}`,
        ),
        '--bind-address=127.0.0.1',
        `--secure-port=${port}`,
        '--leader-elect=false',
      ];
    };
    start('kube-controller-manager', [
      ...(await ownFlags('kube-controller-manager', managerPort)),
      '--use-service-account-credentials=true',
      `--service-account-private-key-file=${identities.accountKey}`,
      `--root-ca-file=${identities.caFile}`,
      `--cluster-signing-cert-file=${identities.caFile}`,
      `--cluster-signing-key-file=${identities.caKeyFile}`,
      ...qpsFlags(controllersQps),
    ]);
    const scheduler = start('kube-scheduler', [
      ...(await ownFlags('kube-scheduler', schedulerPort)),
      ...qpsFlags(schedulerQps),
    ]);
    start('kwok', [
      `--kubeconfig=${await identities.kubeconfig({ cn: 'kwok', group: 'system:masters' }, server)}`,
      `--config=${await chosenStages(stages, options)}`,
      '--cidr=10.244.0.0/16',
      '--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake',
      '--node-lease-duration-seconds=40',
    ]);
    // The scheduler signs its own certificate.
    const health = `https://127.0.0.1:${schedulerPort}/readyz`;
    await ready(scheduler, async () => (await httpsStatus(health, { rejectUnauthorized: false })) === 200);
    return plane;
  } catch (error) {
    await stop();
    throw error;
  }
}

function qpsFlags(qps: number | undefined): readonly string[] {
  return qps === undefined ? [] : [`--kube-api-qps=${qps}`, `--kube-api-burst=${2 * qps}`];
}

/** @returns the path of kwok's stages without those that are not wanted */
async function chosenStages(
  stages: string,
  { directory, simulatesPods = true, endsJobs = true }: ControlPlaneOptions,
): Promise<string> {
  if (simulatesPods && endsJobs) return stages;
  const kept = parseAllDocuments(await readFile(stages, 'utf8')).filter((stage) => {
    if (stage.contents === null) return false;
    const isOfPods = stage.getIn(['spec', 'resourceRef', 'kind']) === 'Pod';
    if (isOfPods && !simulatesPods) return false;
    return endsJobs || stage.getIn(['metadata', 'name']) !== 'pod-complete';
  });
  const path = join(directory, 'stages.yaml');
  await writeFile(path, kept.map((stage) => stringify(stage)).join('---\n'));
  return path;
}
