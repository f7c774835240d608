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
import type { AuthenticatedResponse, Authenticator } from './auth/authenticator.ts';
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
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  readonly documents: LookupDocuments;
}

interface EndpointVisit extends LookupParts {
  readonly lookup: ManifestLookup;
  readonly endpoint: Endpoint;
  readonly credential: MatchedCredential | undefined;
  readonly signal: AbortSignal;
}

export class EndpointLookup implements ContentReader {
  readonly where: string;
  /** For messages. */
  readonly about: Circumstances;
  readonly #visit: EndpointVisit;
  #credentialUsed = false;
  /** Whether the endpoint turned out not to speak TLS. */
  #plain = false;

  constructor(visit: EndpointVisit) {
    const { endpoint, credential, lookup } = visit;
    this.where = endpoint.host;
    this.#visit = visit;
    const { repository, missingCredential } = lookup;
    this.about = { host: endpoint.host, repository, credential, missingCredential };
  }

  /** @throws RegistryError for the response; TransportError and others for failures on the way */
  async run(): Promise<ManifestResult> {
    const { reference, knownDigest } = this.#visit.lookup;
    if (knownDigest !== undefined && (await this.#isUnchanged(reference, knownDigest)))
      return this.#unchanged(knownDigest);
    const { digest, document } = await this.#read('manifests', reference, ({ body, headers }) => {
      const announced = isDigest(reference) ? reference : headers['docker-content-digest']?.[0];
      if (announced !== undefined && isDigest(announced)) this.#verify(body, announced);
      return {
        digest: digestOf(body, announced),
        document: readManifest(body, headers['content-type']?.[0]),
      };
    });
    if (digest === knownDigest) return this.#unchanged(digest);
    const content = await contentOf(document, digest, this);
    return this.#result({ unchanged: false, digest, mediaType: document.mediaType, ...content });
  }

  /**
   * The tags of the repository (distribution spec, "Listing tags"). Registries return them in pages. The address
   * of the next page is not followed: only its `last` is taken over. @throws as `run`
   */
  async tags(): Promise<TagList> {
    const tags: string[] = [];
    let last: string | undefined;
    for (let page = 0; page < maxTagPages; page += 1) {
      const query = { n: tagsPerPage, ...(last !== undefined && { last }) };
      const response = await this.#send('GET', 'tags', 'list', { query });
      if (response.status !== 200) throw this.#refusal(response);
      tags.push(...readTags(response.body));
      const next = nextTag(response.headers['link']?.[0]);
      if (next === undefined || next === last) return { tags, isComplete: true };
      last = next;
    }
    return { tags, isComplete: false };
  }

  async manifest(descriptor: Descriptor): Promise<ReturnType<typeof readManifest>> {
    return this.#described('manifests', descriptor, (body) => readManifest(body, descriptor.mediaType));
  }

  async config(descriptor: Descriptor): Promise<ReturnType<typeof readConfig>> {
    return this.#described('blobs', descriptor, readConfig);
  }

  /** @returns false if the digest changed or the endpoint does not know HEAD */
  async #isUnchanged(reference: string, knownDigest: string): Promise<boolean> {
    const head = await this.#send('HEAD', 'manifests', reference);
    if (headUnknown.has(head.status)) return false;
    if (head.status !== 200) throw this.#refusal(head);
    return head.headers['docker-content-digest']?.[0] === knownDigest;
  }

  /** A document that another one refers to. */
  async #described<Document>(
    kind: ObjectKind,
    { digest, size }: Descriptor,
    read: (body: Buffer) => Document,
  ): Promise<Document> {
    const { maxBytes } = objectKinds[kind];
    if (size > maxBytes) throw this.#error('too-large', `a document of more than ${maxBytes} bytes`);
    return await this.#read(kind, digest, ({ body }) => {
      if (body.length !== size) throw this.#mismatch('its size differs from its descriptor');
      this.#verify(body, digest);
      return read(body);
    });
  }

  async #read<Document>(
    kind: ObjectKind,
    object: string,
    use: (response: AuthenticatedResponse) => Document,
  ): Promise<Document> {
    const { documents, signal } = this.#visit;
    using place = documents.place(this.where, signal);
    const response = await this.#send('GET', kind, object, { large: place });
    if (response.status !== 200) throw this.#refusal(response);
    documents.count(this.#visit.endpoint, response.body);
    return use(response);
  }

  /** Sends a request, and again by http if the endpoint may fall back to it. @param query further parameters */
  async #send(
    method: 'GET' | 'HEAD',
    kind: ObjectKind,
    object: string,
    {
      query = {},
      large,
    }: { readonly query?: Readonly<Record<string, string>>; readonly large?: LargeBody | undefined } = {},
  ): Promise<AuthenticatedResponse> {
    const { endpoint, credential, lookup, authenticator, signal } = this.#visit;
    const { repository, trace } = lookup;
    const url = objectUrl(endpoint, repository, kind, object, this.#plain ? 'http:' : undefined);
    if (!url) throw this.#error('not-found', `no such name: ${repository}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const request = { method, url, ...objectKinds[kind], large, endpoint, repository, credential, trace };
    try {
      const response = await authenticator.send(request, signal);
      this.#credentialUsed ||= response.credentialUsed;
      return response;
    } catch (error) {
      if (this.#plain || !mayFallBack(endpoint, url, error)) throw error;
      this.#plain = true;
      return await this.#send(method, kind, object, { query, large });
    }
  }

  #unchanged(digest: string): ManifestResult {
    return this.#result({ unchanged: true, digest, mediaType: '', kind: 'image', platforms: [] });
  }

  #result(found: Omit<ManifestResult, 'endpoint' | 'credential'>): ManifestResult {
    const { endpoint, credential } = this.#visit;
    return {
      ...found,
      endpoint,
      ...(credential && this.#credentialUsed && { credential }),
    };
  }

  #verify(bytes: Uint8Array, digest: string): void {
    if (digestOf(bytes, digest) !== digest) throw this.#mismatch('its digest differs from the requested one');
  }

  /** The error of a status other than 200. */
  #refusal({ status, headers, moved, url, credentialUsed }: AuthenticatedResponse): RegistryError {
    const host = moved ? url.host : this.where;
    if (moved && status === 401) {
      const message = `${this.where}: it redirects to ${host}, which requires credentials and never gets any`;
      return new RegistryError('unauthorized', host, message);
    }
    const retryAfter = headers['retry-after']?.[0];
    const about = { ...this.about, host, isUnsent: !credentialUsed };
    return statusError(status, about, retryAfter, this.#visit.clock.now());
  }

  #mismatch(reason: string): RegistryError {
    const { repository } = this.about;
    return this.#error('digest-mismatch', `verification failed for a document of ${repository}: ${reason}`);
  }

  #error(code: RegistryError['code'], message: string): RegistryError {
    return new RegistryError(code, this.where, `${this.where}: ${message}`);
  }
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

/** The `last` of the next page: `</v2/app/tags/list?last=1.2&n=1000>; rel="next"`. */
function nextTag(link: string | undefined): string | undefined {
  const address = /^<([^>]{1,2048})>\s*;\s*rel="?next"?/.exec(link ?? '')?.[1];
  if (address === undefined || !URL.canParse(address, 'https://registry.invalid')) return undefined;
  return new URL(address, 'https://registry.invalid').searchParams.get('last') ?? undefined;
}
