/** An installation in an API server with a store: Deployments, DaemonSet, pods with metrics, ConfigMap. */
import type { Test } from 'tap';
import { leadingLevel } from '../../../src/controller/lead/runner.ts';
import { showAgents } from '../../../src/fleet/fleet.ts';
import { configurationHash } from '../../../src/policy/configuration/configuration.ts';
import { configurationInfo } from '../../../src/policy/configuration/live.ts';
import type { RequestLimit } from '../../../src/registry/net/docker-hub-limit.ts';
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts';
import { addProcessMetrics } from '../../../src/telemetry/process.ts';
import type { KubeStore } from '../../support/kube-store.ts';
import { storeWithConfig } from '../world.ts';

export const core = '/api/v1/namespaces/archwright';
export const apps = '/apis/apps/v1/namespaces/archwright';

/** The state in the metrics of a replica. */
export interface ReplicaState {
  hash: string;
  leads?: boolean;
  readyAgents?: number;
  silentAgents?: number;
  dockerHub?: RequestLimit;
  /** Sets further metrics. */
  more?: (metrics: Metrics) => void;
}

export function labelsOf(part: string) {
  return {
    'app.kubernetes.io/part-of': 'archwright',
    'app.kubernetes.io/name': 'archwright',
    'app.kubernetes.io/component': part,
  };
}

function pageOf(part: string, state: ReplicaState): Promise<string> {
  const metrics = createMetrics();
  addProcessMetrics(metrics, { version: '0.1.0', commit: 'test' });
  metrics.info(configurationInfo)({ hash: state.hash });
  if (part === 'controller') metrics.gauge(leadingLevel).set(state.leads === true ? 1 : 0);
  const { readyAgents: ready = 1, silentAgents: silent = 0 } = state;
  showAgents(metrics, {
    counts: () => ({ ready, silent, groups: 1 }),
    dockerHubLimit: () => state.dockerHub,
    isAvailable: ready > 0,
  });
  state.more?.(metrics);
  return metrics.render();
}

export async function installation(t: Test) {
  const { store, config } = await storeWithConfig(t);
  const put = (kind: 'deployments' | 'daemonsets', name: string, part: string, status: object): void => {
    const metadata = { generation: 1, labels: labelsOf(part) };
    store.put(`${apps}/${kind}/${name}`, {
      metadata,
      spec: {},
      status: { observedGeneration: 1, ...status },
    });
  };
  const states = new Map<string, ReplicaState>();
  /** Renders the metrics of all pods again. */
  const refresh = async (): Promise<void> => {
    for (const [name, state] of states) {
      const part = name.includes('webhook') ? 'webhook' : 'controller';
      const page = await pageOf(part, state);
      store.page(`${core}/pods/${name}:8080/proxy/metrics`, () => page);
    }
  };
  const configure = (text: string): string => {
    const labels = { 'app.kubernetes.io/part-of': 'archwright' };
    store.put(`${core}/configmaps/archwright`, { metadata: { labels }, data: { 'archwright.toml': text } });
    return configurationHash(text);
  };
  const hash = configure('logLevel = "info"\n');
  put('deployments', 'archwright-webhook', 'webhook', { replicas: 2, updatedReplicas: 2 });
  put('deployments', 'archwright-controller', 'controller', { replicas: 1, updatedReplicas: 1 });
  put('daemonsets', 'archwright-agent', 'agent', { desiredNumberScheduled: 1, numberReady: 1 });
  for (const name of ['archwright-webhook-a', 'archwright-webhook-b', 'archwright-controller-a']) {
    const part = name.split('-')[1] ?? '';
    putPod(store, name, part, {});
    states.set(name, { hash, leads: part === 'controller' });
  }
  putPod(store, 'archwright-agent-x', 'agent', {});
  await refresh();
  return { store, config, hash, put, configure, refresh, states };
}

export function putPod(
  store: KubeStore,
  name: string,
  part: string,
  { spec = {}, status = {} }: { spec?: object; status?: object },
): void {
  const container = {
    name: part,
    image: 'registry.example/archwright:0.1.0',
    args: [part],
    ports: [{ name: 'metrics', containerPort: part === 'agent' ? 9444 : 8080 }],
  };
  store.put(`${core}/pods/${name}`, {
    metadata: { labels: labelsOf(part) },
    spec: {
      nodeName: 'node-1',
      containers: [container],
      volumes: [{ name: 'config', configMap: { name: 'archwright' } }],
      ...spec,
    },
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      conditions: [{ type: 'Ready', status: 'True' }],
      ...status,
    },
  });
}
