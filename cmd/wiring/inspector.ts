/** Whom the subcommands that answer a person about a cluster ask for images: agents where they are named, else registries. */
import type { Fleet } from '../../src/fleet/fleet.ts';
import type { Inspector } from '../../src/images/facts/facts.ts';
import { openFleet } from './fleet.ts';
import { openInspection } from './inspection.ts';
import type { Kubernetes } from './kubernetes.ts';
import type { CliContext } from '../program/cli-context.ts';
import type { Invocation } from '../program/subcommand.ts';

/** How long agents are looked for. */
const discoveryMs = 5000;

/**
 * Opens them.
 * @param opened takes what is to be closed in the end, in the reverse order
 * @returns the fleet too, where there are agents
 */
export async function openInspector(
  subcommand: string,
  { io, stop }: Pick<Invocation, 'io' | 'stop'>,
  { configuration, dockerConfigs, log, metrics }: CliContext,
  kubernetes: Kubernetes | undefined,
  opened: (() => unknown)[],
): Promise<{ readonly inspector: Inspector; readonly fleet?: Fleet }> {
  const agents = await openFleet({
    subcommand,
    agents: configuration.agents,
    agentTlsDir: configuration.agentTlsDir,
    client: kubernetes?.client,
    log,
    metrics,
  });
  if (agents) {
    opened.push(() => agents.close());
    const patience = AbortSignal.any([stop, AbortSignal.timeout(discoveryMs)]);
    await agents.ready(patience).catch(() => undefined);
    const { fleet } = agents;
    // A refusal is passed on to other groups, so they have to be known.
    await fleet.grouped(patience);
    return { inspector: fleet, fleet };
  }
  const inspection = await openInspection({
    configuration: () => configuration,
    dockerConfigs,
    env: io.env,
    log,
  });
  opened.push(() => inspection.close());
  return { inspector: inspection.inspector };
}
