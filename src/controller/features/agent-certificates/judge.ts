/** Whether an agent gets the certificate that it requests. Pure. */
import { agentNameOn, agentServerName, agentUsages } from '../../../certificates/agent-names.ts';
import type { RunningPod } from '../../state/cached.ts';
import type { OpenRequest, RequestContent } from './request.ts';

export type Verdict =
  | { readonly kind: 'approve'; readonly node: string }
  | { readonly kind: 'refuse'; readonly why: string }
  /** The cache of pods may be late. */
  | { readonly kind: 'wait' };

/** The caches follow the API server within a second or two. */
const cacheMs = 30_000;

/**
 * The node is the token's: the API server takes it from the pod of the token, so an agent cannot choose one.
 * @param podOf a running pod of archwright's own namespace
 * @param now by the API server's clock
 */
export function judge(
  request: OpenRequest,
  requested: RequestContent | undefined,
  podOf: (name: string) => Pick<RunningPod, 'uid' | 'node' | 'deleting'> | undefined,
  now: number,
): Verdict {
  const refuse = (why: string): Verdict => ({ kind: 'refuse', why });
  const [node, ...nodes] = request.nodes;
  const [podName, podUid] = [request.podNames[0], request.podUids[0]];
  if (node === undefined || nodes.length > 0 || podName === undefined || podUid === undefined)
    return refuse('the token is not bound to a pod on a node');
  if (requested === undefined) return refuse('the request is unreadable, or not signed by a key on P-256');
  const { usages } = request;
  if (usages.length !== agentUsages.length || !agentUsages.every((usage) => usages.includes(usage)))
    return refuse(`only these usages: ${agentUsages.join(', ')}`);
  if (requested.subject !== `CN=${agentServerName}`)
    return refuse(`the subject must be CN=${agentServerName}`);
  const [name, ...names] = requested.names;
  if (requested.hasMore || names.length > 0 || name !== agentNameOn(node))
    return refuse(`the token belongs to node ${node}: only the name ${agentNameOn(node)}`);
  const pod = podOf(podName);
  if (pod?.uid === podUid && pod.node === node && !pod.deleting) return { kind: 'approve', node };
  if (now - request.createdAt < cacheMs) return { kind: 'wait' };
  return refuse(`the pod ${podName} does not run on node ${node}`);
}
