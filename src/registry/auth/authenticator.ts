/**
 * Authentication with an endpoint (containerd `core/remotes/docker/authorizer.go`): a request goes out
 * without credentials until the endpoint challenges it, then with Basic or with a Bearer token.
 *
 * A credential is sent only to the endpoint itself or to its validated realm, and only if the endpoint
 * accepts credentials. A host that an endpoint redirected to gets none, whatever it answers.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { MatchedCredential } from '../../credentials/credential.ts';
import { endpointReach } from '../../http/reach/reach.ts';
import { reveal } from '../../telemetry/secret.ts';
import { headersOf } from '../endpoints/endpoint.ts';
import type { EndpointRequest, FinalResponse, GuardedSend } from '../net/guarded-client.ts';
import type { Clock } from '../../async/clock.ts';
import { authSchemeOf, type AuthScheme } from './challenge.ts';
import { createTokenSource, idOf, type GrantedToken } from './token-source.ts';
import { basic } from './token.ts';

export interface AuthenticatedResponse extends FinalResponse {
  /** Whether the credential was used; an endpoint that sends no challenge gets none. */
  readonly credentialUsed: boolean;
}

interface Authorization {
  readonly header: string | undefined;
  readonly credentialUsed: boolean;
  readonly granted?: GrantedToken;
}

/** Image references choose endpoints and repositories, so there could be any number. About 0.5 KiB each. */
const maxSchemes = 4096;

const none: Authorization = { header: undefined, credentialUsed: false };

export type AuthenticatedSend = ReturnType<typeof createAuthenticatedSend>;

export function createAuthenticatedSend(guardedSend: GuardedSend, clock: Clock) {
  const tokens = createTokenSource(guardedSend, clock);
  /**
   * By endpoint and repository, so that the next request needs no challenge. One path of a registry may belong
   * to an attacker and name any realm, so the challenge of one repository never counts for another.
   */
  const schemes = new BoundedMap<string, AuthScheme>(maxSchemes);

  async function authorize(
    request: EndpointRequest,
    scheme: AuthScheme,
    signal: AbortSignal,
  ): Promise<Authorization> {
    const usable = usableCredential(request.credential);
    if (scheme.scheme === 'bearer') {
      const granted = await tokens.get(request, scheme, usable, signal);
      return { header: `Bearer ${reveal(granted.token)}`, credentialUsed: usable !== undefined, granted };
    }
    // containerd refuses Basic without both; an empty half is no credential.
    if (!usable || usable.credential.username === '') return none;
    return { header: basic(usable.credential), credentialUsed: true };
  }

  async function sendWith(
    request: EndpointRequest,
    { header, credentialUsed }: Authorization,
    signal: AbortSignal,
  ): Promise<AuthenticatedResponse> {
    const { accept, endpoint } = request;
    const step = {
      ...request,
      headers: { accept },
      ownHeaders: {
        ...headersOf(endpoint.headers),
        ...(header !== undefined && { authorization: header }),
      },
      tls: endpoint.tls,
      reach: endpointReach(endpoint),
      dialTimeoutMs: endpoint.dialTimeoutMs,
    };
    const sent = { ...request, credential: credentialUsed ? request.credential : undefined };
    return { ...(await guardedSend(step, sent, signal)), credentialUsed };
  }

  /** Sends a request, and again with an authorization if challenged. A 401 means it did not suffice. */
  return async (request: EndpointRequest, signal: AbortSignal): Promise<AuthenticatedResponse> => {
    const key = schemeKey(request);
    const known = schemes.get(key);
    const forget = (error: unknown): never => {
      // The registry may name another token server now.
      schemes.delete(key);
      throw error;
    };
    const first = known ? await authorize(request, known, signal).catch(forget) : none;
    const response = await sendWith(request, first, signal);
    if (response.status !== 401 || response.moved) return response;
    tokens.forget(first.granted);
    const scheme = authSchemeOf(request, response.headers['www-authenticate'] ?? [], response.remoteAddress);
    if (!scheme) return response;
    schemes.set(key, scheme);
    if (!mayHelp(request, scheme, first)) return response;
    const second = await authorize(request, scheme, signal);
    if (second.header === undefined) return response;
    const last = await sendWith(request, second, signal);
    if (last.status === 401) tokens.forget(second.granted);
    return last;
  };
}

function schemeKey({ endpoint, url, repository }: EndpointRequest): string {
  return `${url.protocol} ${endpoint.base} ${endpoint.namespace} ${repository}`;
}

/** Whether this scheme differs from the rejected authorization. A cached token may be revoked. */
function mayHelp(request: EndpointRequest, scheme: AuthScheme, { header, granted }: Authorization): boolean {
  if (header === undefined) return true;
  if (scheme.scheme === 'basic') return granted !== undefined;
  if (!granted || granted.cached) return true;
  return granted.id !== idOf(request, scheme, usableCredential(request.credential));
}

/**
 * The credential, if it can be presented. The kubelet hands a password without user name to containerd, which
 * then sends an anonymous request. Only in containerd's own configuration, in our own files and by
 * `isIdentityToken` is such a password an identity token.
 */
function usableCredential(credential: MatchedCredential | undefined): MatchedCredential | undefined {
  if (!credential || reveal(credential.credential.password) === '') return undefined;
  const { username, isIdentityToken = false } = credential.credential;
  const isToken =
    isIdentityToken || credential.source === 'containerd' || credential.source === 'registry-toml';
  return username !== '' || isToken ? credential : undefined;
}
