/** Where `explain` and `report` look up images: at agents if `--agents` is set, otherwise at registries. */
import type { Fleet } from '../../src/fleet/fleet.ts';
import type { ImageFactsSource } from '../../src/images/facts/facts.ts';
import { openFleet } from './fleet.ts';
import { openInspection } from './inspection.ts';
import type { Kubernetes } from './kubernetes.ts';
import type { CliContext } from '../program/cli-context.ts';
import type { Invocation } from '../program/subcommand.ts';

/** Limit for the discovery of agents. */
const discoveryMs = 5000;

/**
 * Opens the inspector.
 * @param opened closes what this opens
 * @returns the fleet too, if there are agents
 */
export async function openInspector(
  subcommand: string,
  { io, stop }: Pick<Invocation, 'io' | 'stop'>,
  { configuration, dockerConfigs, log, metrics }: CliContext,
  kubernetes: Kubernetes | undefined,
  opened: AsyncDisposableStack,
): Promise<{ readonly inspector: ImageFactsSource; readonly fleet?: Fleet }> {
  const agents = await openFleet({
    subcommand,
    agents: configuration.agents,
    agentTlsDir: configuration.agentTlsDir,
    client: kubernetes?.client,
    log,
    metrics,
  });
  if (agents) {
    opened.defer(() => agents.close());
    const patience = AbortSignal.any([stop, AbortSignal.timeout(discoveryMs)]);
    await agents.ready(patience).catch(() => undefined);
    const { fleet } = agents;
    // A refusal goes on to the other credential groups, so discovery must find them first.
    await fleet.grouped(patience);
    return { inspector: fleet, fleet };
  }
  const inspection = await openInspection({
    configuration: () => configuration,
    dockerConfigs,
    env: io.env,
    log,
  });
  opened.defer(() => inspection.close());
  return { inspector: inspection.inspector };
}
