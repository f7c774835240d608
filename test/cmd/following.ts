/** Policies as a part that runs in a cluster follows them, over an API server of ours. */
import type { Test } from 'tap';
import { followPolicies, type ClusterPolicies } from '../../cmd/wiring/cluster-policies.ts';
import { createKubeClient } from '../../src/kube/api/client.ts';
import { defaultConfiguration, type Configuration } from '../../src/policy/configuration/configuration.ts';
import { createLog, type Log } from '../../src/telemetry/log.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { startKubeStore, type KubeStore } from '../support/kube-store.ts';

export interface Following {
  readonly store: KubeStore;
  readonly log: Log;
  readonly lines: readonly string[];
  readonly policies: ClusterPolicies['policies'];
}

/** Follows them, and is ready; ends with the test. */
export async function follow(
  t: Test,
  options: {
    readonly configuration?: Partial<Configuration>;
    readonly prepare?: (store: KubeStore) => void;
  } = {},
): Promise<Following> {
  const store = await startKubeStore();
  options.prepare?.(store);
  const client = createKubeClient({ access: store.access, userAgent: 'test' });
  const lines: string[] = [];
  const log = createLog({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  const configuration = { ...defaultConfiguration(), namespace: 'archwright', ...options.configuration };
  const followed = followPolicies({
    configuration: {
      current: () => configuration,
      onChange: () => undefined,
      refresh: () => Promise.resolve(),
      close: () => Promise.resolve(),
    },
    kubernetes: { access: store.access, client, podNamespace: undefined },
    log,
    metrics: createMetrics(),
  });
  t.teardown(async () => {
    followed.close();
    client.close();
    await store.close();
  });
  await followed.ready(AbortSignal.timeout(10_000));
  return { store, log, lines, policies: followed.policies };
}
