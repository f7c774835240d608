/**
 * The nodes that can pull the images of a pod, for `requirePullableNodes`. No node is left out whose credential
 * group has not answered within the pod's time budget, and none at all if pull secrets that may give access
 * cannot be read.
 */
import { ifError } from '../async/if-error.ts';
import { CredentialError } from '../credentials/credential.ts';
import type { CredentialGroup } from '../fleet/agents.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { PullableGroups } from '../fleet/pullable.ts';
import type { RequestOf } from '../images/facts/facts.ts';
import type { NodeGroup, Pullability } from '../placement/decision.ts';
import type { Log } from '../telemetry/log.ts';
import type { Clock } from '../async/clock.ts';
import { timeLimit } from '../async/wait.ts';
import type { FactsByImage, PodFactsRequest } from './facts-of-pod.ts';
import type { NodeHostnames } from './nodes.ts';
import { readPullSecrets, type PullSecrets } from './pull-secrets.ts';

/** Keys: images as the pod writes them. An image without an entry leaves no node out. */
export type PullabilityByImage = ReadonlyMap<string, Pullability>;

/** @param facts of the images; those without a successful lookup are left out */
export type PullableNodes = (request: PodFactsRequest, facts: FactsByImage) => Promise<PullabilityByImage>;

export function createPullableNodes(options: {
  readonly fleet: Pick<Fleet, 'pullable'>;
  readonly requestOf: RequestOf;
  readonly pullSecrets: PullSecrets;
  readonly nodeHostnames: NodeHostnames;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Log;
}): PullableNodes {
  const { fleet, requestOf, pullSecrets, nodeHostnames, clock } = options;

  async function pullableNodes(request: PodFactsRequest, facts: FactsByImage): Promise<PullabilityByImage> {
    const pulled = request.uses.filter(({ image }) => {
      const known = facts.get(image);
      return known !== undefined && known.error === undefined && known.source !== 'override';
    });
    if (pulled.length === 0) return new Map();
    using budget = timeLimit(request.budgetMs, clock.sleep);
    const { signal } = budget;
    let source: ReturnType<typeof readPullSecrets> | undefined;
    const found = await Promise.all(
      pulled.map(async ({ image, pullPolicy }): Promise<[string, Pullability][]> => {
        const withoutSecrets = requestOf(image, pullPolicy, request);
        const isPrivate = facts.get(image)?.credentialSource === 'pull-secret';
        const groups = isPrivate ? undefined : await fleet.pullable(withoutSecrets, signal);
        // Results without pull secrets serve all pods, so they come first.
        const isEnough = groups && (groups.unable.length === 0 || !pullSecrets.mayHave(request.pullSecrets));
        if (isEnough) return [[image, pullabilityOf(groups)]];
        source ??= readPullSecrets(options, request.namespace, request.pullSecrets, signal);
        // A malformed secret makes the pull fail on every node.
        const looking = (await source)?.lookup(withoutSecrets.reference.repository);
        const pullCredentials = await looking?.catch(ifError(CredentialError, () => undefined));
        if (pullCredentials === undefined) return [];
        return [[image, pullabilityOf(await fleet.pullable({ ...withoutSecrets, pullCredentials }, signal))]];
      }),
    );
    return new Map(found.flat());
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

  function nodeGroup({ fingerprint, nodes, architectures }: CredentialGroup): NodeGroup {
    const hostnames = [...new Set(nodes.flatMap((node) => nodeHostnames(node)))];
    return { fingerprint, architectures, hostnames };
  }

  return pullableNodes;
}
