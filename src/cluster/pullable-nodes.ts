/**
 * Which nodes can pull the images of a pod, for `requirePullableNodes`. What the fleet remembers is answered without
 * waiting. A repository that some credential group was never asked about is waited for within the pod's time budget, as
 * an image that memory does not know is; after it the pod is decided by what is known, and the questions go on.
 *
 * Nodes that cannot pull by themselves may be able to with the pod's pull secrets. So where a pod names some, they are read
 * (and kept, as for image facts) before any node is left out; where they cannot be read in time, none is.
 */
import { CredentialError, type CredentialSource, type MatchedCredential } from '../credentials/credential.ts';
import type { CredentialGroup, Fleet, PullableGroups } from '../fleet/fleet.ts';
import type { ImageRequest } from '../images/facts/facts.ts';
import { createReferenceCache } from '../images/references/reference-cache.ts';
import type { NodeGroup, Pullability } from '../placement/decision.ts';
import type { ImageUse } from '../placement/pod/images.ts';
import type { Log } from '../telemetry/log.ts';
import { unlessAborted } from '../async/wait.ts';
import type { FactsByImage, FactsWanted } from './facts-of-pod.ts';
import type { PullSecrets } from './pull-secrets.ts';

/** By image as the pod writes it. Of an image that is not in it, nothing is known. */
export type PullabilityByImage = ReadonlyMap<string, Pullability>;

export interface NodesWanted extends FactsWanted {
  /** What is known of the images; those that could not be inspected are left out. */
  readonly facts: FactsByImage;
}

export type PullableNodes = (wanted: NodesWanted) => PullabilityByImage | Promise<PullabilityByImage>;

export interface PullableNodesOptions {
  readonly fleet: Pick<Fleet, 'pullable'>;
  readonly pullSecrets: PullSecrets;
  /** `kubernetes.io/hostname` of a node; `undefined`: not known, then it is taken to be the node's name, as is usual. */
  readonly nodeHostname: (node: string) => string | undefined;
  readonly log: Log;
}

export function createPullableNodes(options: PullableNodesOptions): PullableNodes {
  const { fleet, pullSecrets, nodeHostname, log } = options;
  const parse = createReferenceCache();

  function pullableNodes(wanted: NodesWanted): PullabilityByImage | Promise<PullabilityByImage> {
    const found = new Map<string, Pullability>();
    const open: ImageRequest[] = [];
    const secrets = pullSecrets.mayHave(wanted.pullSecrets);
    for (const use of wanted.uses) {
      const question = questionOf(use, wanted);
      if (question === undefined) continue;
      const bySecret = wanted.facts.get(use.image)?.credentialSource === 'pull-secret';
      const groups = bySecret ? undefined : fleet.pullable(question);
      if (groups === undefined || groups.pending || (secrets && groups.unable.length > 0))
        open.push(question);
      else found.set(use.image, pullabilityOf(groups));
    }
    return open.length === 0 ? found : inquire(wanted, open, found);
  }

  /** Nobody is asked about an image that is never pulled, which has no facts, or that could not even be inspected. */
  function questionOf(
    { image, pullPolicy }: ImageUse,
    { facts, serviceAccount }: NodesWanted,
  ): ImageRequest | undefined {
    const known = facts.get(image);
    if (known === undefined || known.error || known.source === 'override') return undefined;
    const question = { image, reference: parse(image), pullPolicy, pullCredentials: [] };
    return serviceAccount === undefined ? question : { ...question, serviceAccount };
  }

  async function inquire(
    wanted: NodesWanted,
    open: readonly ImageRequest[],
    found: Map<string, Pullability>,
  ): Promise<PullabilityByImage> {
    const budget = AbortSignal.timeout(Math.max(1, Math.ceil(wanted.budgetMs)));
    const source = await sourceFor(wanted, budget);
    await Promise.all(
      open.map(async (question) => {
        const credentials = await credentialsOf(question, source);
        if (credentials === undefined) return;
        const groups = await settled({ ...question, pullCredentials: credentials }, budget);
        found.set(question.image, pullabilityOf(groups));
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

  /** `undefined` where they are not known, or the pull fails on every node because of them. */
  async function credentialsOf(
    { reference }: ImageRequest,
    source: CredentialSource | undefined,
  ): Promise<readonly MatchedCredential[] | undefined> {
    try {
      return await source?.lookup(reference.repository);
    } catch (error) {
      if (error instanceof CredentialError) return undefined;
      throw error;
    }
  }

  /** What is known when all groups have been asked, or the time is up. */
  async function settled(question: ImageRequest, signal: AbortSignal): Promise<PullableGroups> {
    const groups = fleet.pullable(question);
    if (groups.pending === undefined) return groups;
    await unlessAborted(groups.pending, signal).catch(() => undefined);
    return fleet.pullable(question);
  }

  function pullabilityOf({ able, unable }: PullableGroups): Pullability {
    return { able: able.map(nodeGroup), unable: unable.map(nodeGroup) };
  }

  function nodeGroup({ name, nodes, architectures }: CredentialGroup): NodeGroup {
    return { name, architectures, hostnames: nodes.map((node) => nodeHostname(node) ?? node) };
  }

  return pullableNodes;
}
