/** Requests of agents for certificates: CertificateSigningRequests, and the PKCS #10 inside (RFC 2986). */
import type { webcrypto } from 'node:crypto';
import type { CertificateSigningRequest, KubeObject } from '../../../kube/api/objects.ts';
import { agentRequestPrefix, agentSigner } from '../../../certificates/agent-names.ts';
import { timeOf } from '../../../kube/api/fields.ts';

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

/** The content of a PKCS #10 request. */
export interface RequestContent {
  readonly publicKey: webcrypto.CryptoKey;
  readonly subject: string;
  /** DNS names. */
  readonly names: readonly string[];
  /** Whether there is anything else: other kinds of names, extensions or attributes. */
  readonly hasMore: boolean;
}

/** @returns `undefined`: unreadable, not on P-256, or not signed by its own key */
export async function readRequest(text: string): Promise<RequestContent | undefined> {
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
