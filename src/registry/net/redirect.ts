/**
 * Redirects. Registries keep blobs, and some their manifests, in object storage on other hosts; a hostile
 * registry may redirect anywhere. So each step is checked as a new target, and everything that identifies the
 * client (Authorization, the endpoint's own headers, client certificates) is sent only to the first host, and
 * not again if the chain comes back to it.
 */
import { targetReach } from '../../http/reach/reach.ts';
import type { HttpResponse, HttpRequest } from '../../http/client.ts';
import { TransportError } from '../../http/transport-error.ts';

/** containerd follows ten; real registries need one or two. */
const maxRedirects = 5;

const redirects = new Set([301, 302, 303, 307, 308]);

interface RedirectableRequest extends HttpRequest {
  /** Sent only to the first host: Authorization and the endpoint's headers. */
  readonly ownHeaders: Readonly<Record<string, string>>;
}

export interface FinalResponse extends HttpResponse {
  readonly url: URL;
  /** Whether the response is from another host than the request's. */
  readonly moved: boolean;
}

/** Sends a GET or HEAD and its redirects. @throws TransportError `redirect` for a forbidden chain */
export async function followRedirects(
  request: RedirectableRequest,
  send: (step: HttpRequest) => Promise<HttpResponse>,
): Promise<FinalResponse> {
  const { ownHeaders, ...plain } = request;
  let step: HttpRequest = { ...plain, headers: { ...plain.headers, ...ownHeaders } };
  let moved = false;
  let registryIp: string | undefined;
  const seen = new Set([step.url.href]);
  for (;;) {
    const response = await send(step);
    if (!redirects.has(response.status)) return { ...response, url: step.url, moved };
    if (!moved) registryIp = response.remoteAddress;
    if (seen.size > maxRedirects) throw refuse(step.url, `it redirects more than ${maxRedirects} times`);
    const url = target(step.url, response.headers['location']?.[0]);
    if (seen.has(url.href)) throw refuse(step.url, 'it redirects in a circle');
    seen.add(url.href);
    moved ||= url.host !== request.url.host || url.protocol !== request.url.protocol;
    const foreign = { ...plain, reach: targetReach(registryIp), tls: { ...plain.tls, client: [] } };
    step = { ...(moved ? foreign : step), url };
  }
}

function target(from: URL, location: string | undefined): URL {
  const url = location === undefined ? null : URL.parse(location, from.href);
  if (!url) throw refuse(from, 'it redirects to something other than a URL');
  const { protocol, username, password } = url;
  if (protocol !== 'https:' && protocol !== 'http:') throw refuse(from, `it redirects to ${protocol}`);
  if (from.protocol === 'https:' && protocol === 'http:')
    throw refuse(from, 'it redirects from https to http');
  if (username !== '' || password !== '') throw refuse(from, 'it redirects to a URL with user info');
  url.hash = '';
  return url;
}

function refuse(url: URL, reason: string): TransportError {
  return new TransportError('redirect', url.host, reason);
}
