/**
 * The nodes that can pull the images of a pod, for `requirePullableNodes`. Results in the fleet's memory need
 * no wait. An unknown credential group is looked up within the pod's time budget, and beyond it for the next
 * pod. Pull secrets may give a node access, so they are read first; if that fails, no node is left out.
 */
import { ifError } from '../async/if-error.ts';
import { CredentialError, type CredentialSource } from '../credentials/credential.ts';
import type { CredentialGroup, Fleet, PullableGroups } from '../fleet/fleet.ts';
import type { ImageRequest } from '../images/facts/facts.ts';
import { createReferenceCache } from '../images/references/reference.ts';
import type { NodeGroup, Pullability } from '../placement/decision.ts';
import type { Log } from '../telemetry/log.ts';
import type { Clock } from '../async/clock.ts';
import { timeLimit, unlessAborted } from '../async/wait.ts';
import { imageRequest, type FactsByImage, type FactsWanted } from './facts-of-pod.ts';
import type { NodeHostnames } from './node-hostnames.ts';
import type { PullSecrets } from './pull-secrets.ts';

/** By image as the pod writes it; images without any result are not in it. */
export type PullabilityByImage = ReadonlyMap<string, Pullability>;

export interface NodesWanted extends FactsWanted {
  /** Facts of the images; images with a failed inspection are left out. */
  readonly facts: FactsByImage;
}

export type PullableNodes = (wanted: NodesWanted) => PullabilityByImage | Promise<PullabilityByImage>;

export function createPullableNodes(options: {
  readonly fleet: Pick<Fleet, 'pullable'>;
  readonly pullSecrets: PullSecrets;
  readonly nodeHostnames: NodeHostnames;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Log;
}): PullableNodes {
  const { fleet, pullSecrets, nodeHostnames, clock, log } = options;
  const parse = createReferenceCache();

  function pullableNodes(wanted: NodesWanted): PullabilityByImage | Promise<PullabilityByImage> {
    const found = new Map<string, Pullability>();
    const open: ImageRequest[] = [];
    const secrets = pullSecrets.mayHave(wanted.pullSecrets);
    for (const use of wanted.uses) {
      const facts = wanted.facts.get(use.image);
      // The image is never pulled, has no facts, or its lookup failed.
      if (facts === undefined || facts.error || facts.source === 'override') continue;
      const request = imageRequest(parse, use, wanted);
      const groups = facts.credentialSource === 'pull-secret' ? undefined : fleet.pullable(request);
      if (groups === undefined || groups.pending || (secrets && groups.unable.length > 0)) open.push(request);
      else found.set(use.image, pullabilityOf(groups));
    }
    return open.length === 0 ? found : lookUp(wanted, open, found);
  }

  async function lookUp(
    wanted: NodesWanted,
    open: readonly ImageRequest[],
    found: Map<string, Pullability>,
  ): Promise<PullabilityByImage> {
    using budget = timeLimit(Math.max(1, Math.ceil(wanted.budgetMs)), clock.sleep);
    const { signal } = budget;
    const source = await sourceFor(wanted, signal);
    await Promise.all(
      open.map(async (request) => {
        // The secrets could not be read, or make the pull fail on every node.
        const looking = source?.lookup(request.reference.repository);
        const credentials = await looking?.catch(ifError(CredentialError, () => undefined));
        if (credentials === undefined) return;
        const groups = await settled({ ...request, pullCredentials: credentials }, signal);
        found.set(request.image, pullabilityOf(groups));
      }),
    );
    return found;
  }

  async function sourceFor(
    { namespace, pullSecrets: names }: NodesWanted,
    signal: AbortSignal,
  ): Promise<CredentialSource | undefined> {
    try {
      return await pullSecrets.source(namespace, names, signal);
    } catch (error) {
      log.debug({ err: error, namespace }, 'pull secrets could not be read in time; no node is left out');
      return undefined;
    }
  }

  /** The results when all groups have answered, or the time is up. */
  async function settled(request: ImageRequest, signal: AbortSignal): Promise<PullableGroups> {
    const groups = fleet.pullable(request);
    if (groups.pending === undefined) return groups;
    await unlessAborted(groups.pending, signal).catch(() => undefined);
    return fleet.pullable(request);
  }

  function pullabilityOf(groups: PullableGroups): Pullability {
    const able = groups.able.map(nodeGroup);
    // A node without an agent may be in a pool with agents of several groups.
    const eligible = new Set(able.flatMap(({ hostnames }) => hostnames));
    const unable = groups.unable.map(nodeGroup).map((group) => {
      return { ...group, hostnames: group.hostnames.filter((hostname) => !eligible.has(hostname)) };
    });
    return { able, unable };
  }

  function nodeGroup({ name, nodes, architectures }: CredentialGroup): NodeGroup {
    return { name, architectures, hostnames: [...new Set(nodes.flatMap((node) => nodeHostnames(node)))] };
  }

  return pullableNodes;
}
