/**
 * Image facts of a subcommand: memory in front of the agents, if `--agents` is set, otherwise in front of registries.
 */
import type { Fleet } from '../../src/fleet/fleet.ts';
import type { FactsMemory } from '../../src/images/memory/memory.ts';
import type { KubeClient } from '../../src/kube/api/client.ts';
import type { Metrics } from '../../src/telemetry/metrics.ts';
import { openFleet, type OpenFleet } from './fleet.ts';
import { openInspection, type InspectionOptions } from './inspection.ts';
import { openMemory } from './memory.ts';

export interface ImageFactsOptions extends InspectionOptions {
  readonly metrics: Metrics;
  readonly subcommand: string;
  readonly client: KubeClient | undefined;
  /** Whether the agents' client certificate may appear later. */
  readonly mayWait?: boolean;
}

export interface OpenImageFacts {
  readonly memory: FactsMemory;
  readonly fleet: Fleet | undefined;
  /** Resolves after the first discovery of agents. */
  readonly ready: OpenFleet['ready'];
}

/** @param opened closes what this opens */
export async function openImageFacts(
  options: ImageFactsOptions,
  opened: AsyncDisposableStack,
): Promise<OpenImageFacts> {
  const { subcommand, configuration, client, log, metrics, mayWait = false } = options;
  const { agents, agentTlsDir } = configuration();
  const open = await openFleet({ subcommand, agents, agentTlsDir, client, log, metrics, mayWait });
  const source = open ?? (await openInspection(options));
  opened.defer(() => source.close());
  const inspector = 'fleet' in source ? source.fleet : source.inspector;
  const memory = await openMemory({ configuration, inspector, log, metrics });
  opened.defer(() => memory.close());
  return { memory, fleet: open?.fleet, ready: async (signal) => open?.ready(signal) };
}
