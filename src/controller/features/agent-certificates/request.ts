/**
 * Requests of agents for certificates: CertificateSigningRequests, and the PKCS #10 inside (RFC 2986). Whether
 * an agent gets the certificate that it requests.
 */
import type { webcrypto } from 'node:crypto';
import { type CertificateSigningRequest, type KubeObject, timeOf } from '../../../kube/api/objects.ts';
import {
  agentNameOn,
  agentRequestPrefix,
  agentServerName,
  agentSigner,
  agentUsages,
} from '../../../certificates/agent-names.ts';
import type { RunningPod } from '../../state/cached.ts';

export type OpenRequest = Readonly<NonNullable<ReturnType<typeof trimRequest>>>;

/** An agent's has some 500 bytes. */
const maxRequestLength = 4096;

/** @returns `undefined`: it is no agent's, or has its answer. A foreign one takes a name, whatever its answer is */
export function trimRequest(object: KubeObject, account: string) {
  const { metadata = {}, spec, status = {} } = object as CertificateSigningRequest;
  const has = (condition: string): boolean =>
    status.conditions?.some(({ type }) => type === condition) ?? false;
  const isOfSigner = spec.signerName === agentSigner;
  if (!isOfSigner && !metadata.name?.startsWith(agentRequestPrefix)) return undefined;
  const isForeign = !isOfSigner || spec.username !== account;
  if (!isForeign && (status.certificate || has('Denied') || has('Failed'))) return undefined;
  const text = Buffer.from(spec.request.slice(0, maxRequestLength), 'base64').toString('latin1');
  const extra = (key: string): readonly string[] => spec.extra?.[`authentication.kubernetes.io/${key}`] ?? [];
  return {
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    createdAt: timeOf(metadata.creationTimestamp),
    /** It takes a name that an agent may need. */
    isForeign,
    isApproved: has('Approved'),
    usages: spec.usages ?? [],
    text,
    // Claims of the token that the request came with (KEP 4193).
    nodes: extra('node-name'),
    podNames: extra('pod-name'),
    podUids: extra('pod-uid'),
  };
}

export type RequestContent = NonNullable<Awaited<ReturnType<typeof readRequest>>>;

/**
 * The content of a PKCS #10 request: its DNS names, and whether it has anything else (other kinds of names,
 * extensions or attributes).
 * @returns `undefined`: unreadable, not on P-256, or not signed by its own key
 */
export async function readRequest(text: string) {
  const { x509 } = await import('../../../certificates/library.ts');
  try {
    const request = new x509.Pkcs10CertificateRequest(text);
    const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
    const publicKey: webcrypto.CryptoKey = await crypto.subtle.importKey(
      'spki',
      request.publicKey.rawData,
      algorithm,
      true,
      ['verify'],
    );
    if (!(await request.verify())) return undefined;
    const [found] = request.extensions;
    const items = found instanceof x509.SubjectAlternativeNameExtension ? found.names.items : [];
    const names = items.flatMap(({ type, value }) => (type === 'dns' ? [value] : []));
    const hasMore =
      names.length !== items.length || request.extensions.length !== 1 || request.attributes.length !== 1;
    return { publicKey, subject: request.subject, names, hasMore };
  } catch {
    return undefined;
  }
}

type RequestVerdict =
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
export function judgeRequest(
  request: OpenRequest,
  requested: RequestContent | undefined,
  podOf: (name: string) => Pick<RunningPod, 'uid' | 'node' | 'deleting'> | undefined,
  now: number,
): RequestVerdict {
  const refuse = (why: string): RequestVerdict => ({ kind: 'refuse', why });
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
