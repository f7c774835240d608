/**
 * One lookup at one endpoint with one credential: a HEAD if a digest is known already, else one GET, and for
 * a single manifest one more GET for its config. Every document is verified against its digest before it is
 * used.
 */
import type { MatchedCredential } from '../credentials/credential.ts';
import type { Clock } from '../async/clock.ts';
import type { LargeBody } from '../http/body.ts';
import { asText, parseObject } from '../http/json.ts';
import { TransportError } from '../http/transport-error.ts';
import type { AuthenticatedResponse, AuthenticatedSend } from './auth/authenticator.ts';
import type { Endpoint } from './endpoints/endpoint.ts';
import type { LookupDocuments } from './document-limits.ts';
import { RegistryError, type ManifestLookup, type ManifestResult, type TagList } from './manifest-lookup.ts';
import { maxConfigBytes, readConfig, contentOf, type ContentReader } from './manifests/platforms-of-index.ts';
import {
  digestOf,
  isDigest,
  maxManifestBytes,
  readManifest,
  acceptManifests,
  type Descriptor,
} from './manifests/manifest.ts';
import { statusError, type Circumstances } from './outcome.ts';

const tagsPerPage = '1000';
/** A repository with more tags pushes them by machine; newer ones are rarely the first by name. */
const maxTagPages = 10;

/** Statuses of a HEAD after which a GET may still succeed: the server does not know the method. */
const headUnknown: ReadonlySet<number> = new Set([405, 501]);

/** Limit in bytes and accepted media types, by kind of object. */
const objectKinds = {
  manifests: { purpose: 'manifest', accept: acceptManifests, maxBytes: maxManifestBytes },
  blobs: { purpose: 'config', accept: '*/*', maxBytes: maxConfigBytes },
  // 1,000 tags of 128 characters, and the JSON around them.
  tags: { purpose: 'tags', accept: 'application/json', maxBytes: 256 * 1024 },
} as const;
type ObjectKind = keyof typeof objectKinds;

/** What all visits of one lookup share. */
export interface LookupParts {
  readonly authenticatedSend: AuthenticatedSend;
  readonly clock: Clock;
  readonly documents: LookupDocuments;
}

interface EndpointVisit extends LookupParts {
  readonly lookup: ManifestLookup;
  readonly endpoint: Endpoint;
  readonly credential: MatchedCredential | undefined;
  readonly signal: AbortSignal;
}

export type EndpointLookup = ReturnType<typeof lookupAt>;

export function lookupAt(visit: EndpointVisit) {
  const { lookup, endpoint, credential, signal, authenticatedSend, clock, documents } = visit;
  const { repository, missingCredential, reference, knownDigest, trace } = lookup;
  const where = endpoint.host;
  /** Describes the request in messages. */
  const about: Circumstances = { host: where, repository, credential, missingCredential };
  const reader: ContentReader = {
    where,
    manifest: (descriptor) =>
      described('manifests', descriptor, (body) => readManifest(body, descriptor.mediaType)),
    config: (descriptor) => described('blobs', descriptor, readConfig),
  };
  let isCredentialUsed = false;
  /** Whether the endpoint turned out not to speak TLS. */
  let isPlain = false;

  /** @throws RegistryError for the response; TransportError and others for failures on the way */
  async function run(): Promise<ManifestResult> {
    if (knownDigest !== undefined && (await isUnchanged(knownDigest))) return unchanged(knownDigest);
    const { digest, document } = await read('manifests', reference, ({ body, headers }) => {
      const announced = isDigest(reference) ? reference : headers['docker-content-digest']?.[0];
      if (announced !== undefined && isDigest(announced)) verify(body, announced);
      return {
        digest: digestOf(body, announced),
        document: readManifest(body, headers['content-type']?.[0]),
      };
    });
    if (digest === knownDigest) return unchanged(digest);
    const content = await contentOf(document, digest, reader);
    return resultOf({ unchanged: false, digest, mediaType: document.mediaType, ...content });
  }

  /**
   * The tags of the repository (distribution spec, "Listing tags"). Registries return them in pages. The address
   * of the next page is not followed: only its `last` is taken over. @throws as `run`
   */
  async function tags(): Promise<TagList> {
    const found: string[] = [];
    let last: string | undefined;
    for (let page = 0; page < maxTagPages; page += 1) {
      const query = { n: tagsPerPage, ...(last !== undefined && { last }) };
      const response = await send('GET', 'tags', 'list', undefined, query);
      if (response.status !== 200) throw refusalOf(response);
      found.push(...readTags(response.body));
      const next = nextPage(response.headers['link']?.[0]);
      if (next === undefined) return { tags: found, isComplete: true };
      // Quay has a token instead; a page may be repeated for ever.
      if (next.last === undefined || next.last === last) break;
      last = next.last;
    }
    return { tags: found, isComplete: false };
  }

  /** @returns false if the digest changed or the endpoint does not know HEAD */
  async function isUnchanged(known: string): Promise<boolean> {
    const head = await send('HEAD', 'manifests', reference);
    if (headUnknown.has(head.status)) return false;
    if (head.status !== 200) throw refusalOf(head);
    return head.headers['docker-content-digest']?.[0] === known;
  }

  /** A document that another one refers to. */
  async function described<Document>(
    kind: ObjectKind,
    { digest, size }: Descriptor,
    readBody: (body: Buffer) => Document,
  ): Promise<Document> {
    const { maxBytes } = objectKinds[kind];
    if (size > maxBytes) throw errorOf('too-large', `a document of more than ${maxBytes} bytes`);
    return await read(kind, digest, ({ body }) => {
      if (body.length !== size) throw mismatch('its size differs from its descriptor');
      verify(body, digest);
      return readBody(body);
    });
  }

  async function read<Document>(
    kind: ObjectKind,
    object: string,
    use: (response: AuthenticatedResponse) => Document,
  ): Promise<Document> {
    using place = documents.place(where, signal);
    const response = await send('GET', kind, object, place);
    if (response.status !== 200) throw refusalOf(response);
    documents.count(endpoint, response.body);
    return use(response);
  }

  /** Sends a request, and again by http if the endpoint may fall back to it. @param query further parameters */
  async function send(
    method: 'GET' | 'HEAD',
    kind: ObjectKind,
    object: string,
    large?: LargeBody,
    query: Readonly<Record<string, string>> = {},
  ): Promise<AuthenticatedResponse> {
    const url = objectUrl(endpoint, repository, kind, object, isPlain ? 'http:' : undefined);
    if (!url) throw errorOf('not-found', `no such name: ${repository}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const request = { method, url, ...objectKinds[kind], large, endpoint, repository, credential, trace };
    try {
      const response = await authenticatedSend(request, signal);
      isCredentialUsed ||= response.credentialUsed;
      return response;
    } catch (error) {
      if (isPlain || !mayFallBack(endpoint, url, error)) throw error;
      isPlain = true;
      return await send(method, kind, object, large, query);
    }
  }

  function unchanged(digest: string): ManifestResult {
    return resultOf({ unchanged: true, digest, mediaType: '', kind: 'image', platforms: [] });
  }

  function resultOf(found: Omit<ManifestResult, 'endpoint' | 'credential'>): ManifestResult {
    return { ...found, endpoint, ...(credential && isCredentialUsed && { credential }) };
  }

  function verify(bytes: Uint8Array, digest: string): void {
    if (digestOf(bytes, digest) !== digest) throw mismatch('its digest differs from the requested one');
  }

  /** The error of a status other than 200. */
  function refusalOf({ status, headers, moved, url, credentialUsed }: AuthenticatedResponse): RegistryError {
    const host = moved ? url.host : where;
    if (moved && status === 401) {
      const message = `${where}: it redirects to ${host}, which requires credentials and never gets any`;
      return new RegistryError('unauthorized', host, message);
    }
    const there = { ...about, host, isUnsent: !credentialUsed };
    return statusError(status, there, headers['retry-after']?.[0], clock.now());
  }

  function mismatch(reason: string): RegistryError {
    return errorOf('digest-mismatch', `verification failed for a document of ${repository}: ${reason}`);
  }

  function errorOf(code: RegistryError['code'], message: string): RegistryError {
    return new RegistryError(code, where, `${where}: ${message}`);
  }

  return { about, run, tags };
}

/**
 * `<base>/<repository>/manifests|blobs|tags/<object>`, with `?ns=<namespace>` if the host is not the
 * namespace itself (containerd `core/remotes/docker/resolver.go`).
 * @param scheme replaces the endpoint's scheme if it does not speak TLS
 * @returns undefined if repository or object hold characters that no reference can hold
 */
export function objectUrl(
  endpoint: Pick<Endpoint, 'base' | 'namespace' | 'namespaceParameter'>,
  repository: string,
  kind: ObjectKind,
  object: string,
  scheme?: 'http:',
): URL | undefined {
  const segments = [...repository.split('/'), kind, object];
  if (!segments.every((segment) => /^[A-Za-z0-9_][A-Za-z0-9_.:+-]*$/.test(segment))) return undefined;
  const url = new URL(endpoint.base);
  url.pathname = [...url.pathname.split('/'), ...segments].filter((part) => part !== '').join('/');
  url.search = endpoint.namespaceParameter ? new URLSearchParams({ ns: endpoint.namespace }).toString() : '';
  if (scheme) url.protocol = scheme;
  return url;
}

/**
 * Whether http is tried after https (containerd's `httpFallback`): the peer does not speak TLS or sends
 * nothing during the handshake, or there is no connection and the endpoint names no port. A certificate that
 * fails verification never leads here.
 */
function mayFallBack(endpoint: Endpoint, url: URL, error: unknown): boolean {
  if (!endpoint.httpFallback || url.protocol !== 'https:' || !(error instanceof TransportError)) return false;
  if (error.where !== url.host) return false;
  if (error.failure === 'not-tls' || error.failure === 'tls-timeout') return true;
  return url.port === '' && (error.failure === 'connect' || error.failure === 'dial-timeout');
}

/** Tags that a reference can have. @throws InvalidDocument */
export function readTags(body: Uint8Array): readonly string[] {
  const { tags } = parseObject(body);
  if (!Array.isArray(tags)) return [];
  return tags.flatMap((tag) => {
    const text = asText(tag);
    return text !== undefined && /^\w[\w.-]{0,127}$/.test(text) ? [text] : [];
  });
}

/** The `last` of the next page, if there is one: `</v2/app/tags/list?last=1.2&n=1000>; rel="next"`. */
function nextPage(link: string | undefined): { readonly last: string | undefined } | undefined {
  const address = /^<([^>]{1,2048})>\s*;\s*rel="?next"?/.exec(link ?? '')?.[1];
  if (address === undefined) return undefined;
  return { last: URL.parse(address, 'https://registry.invalid')?.searchParams.get('last') ?? undefined };
}
