/** One request to an endpoint, with the headers of the endpoint's configuration. */
import type { MatchedCredential } from '../../credentials/credential.ts';
import { reveal } from '../../telemetry/secret.ts';
import type { Endpoint, EndpointHeader } from '../endpoints/endpoint.ts';
import type { Attempt } from '../manifest-lookup.ts';
import type { RequestContext } from '../net/guarded-client.ts';
import { credentialLabel } from '../outcome.ts';

export interface EndpointRequest {
  readonly method: 'GET' | 'HEAD';
  readonly url: URL;
  readonly purpose: Attempt['purpose'];
  readonly accept: string;
  readonly maxBytes: number;
  readonly endpoint: Endpoint;
  readonly repository: string;
  /** Absent if the endpoint accepts no credentials. */
  readonly credential: MatchedCredential | undefined;
  readonly trace: ((attempt: Attempt) => void) | undefined;
}

/** Headers by name. Several values become one list, which HTTP treats like several lines. */
export function headersOf(headers: readonly EndpointHeader[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { name, value } of headers) {
    const key = name.toLowerCase();
    const before = found[key];
    const separator = key === 'cookie' ? '; ' : ', ';
    found[key] = before === undefined ? reveal(value) : `${before}${separator}${reveal(value)}`;
  }
  return found;
}

/** @param credentialUsed whether the request carries the credential, or a token for it */
export function contextOf(
  { credential, endpoint, trace }: EndpointRequest,
  purpose: Attempt['purpose'],
  credentialUsed: boolean,
): RequestContext {
  const used = credentialUsed ? credential : undefined;
  return {
    purpose,
    credential: credentialLabel(used),
    credentialId: used?.id ?? 'anonymous',
    // A token server is behind no mirror.
    ...(purpose !== 'token' && endpoint.namespaceParameter && { behind: endpoint.namespace }),
    trace,
  };
}
