/**
 * One endpoint asked with one credential: a HEAD where the digest is known already, else one GET, and for a single manifest
 * one more for its config. Everything read is verified against its digest before it is believed.
 */
import type { MatchedCredential } from '../credentials/credential.ts';
import type { Clock } from '../async/clock.ts';
import type { Authenticator, AuthenticatedAnswer } from './auth/authenticate.ts';
import { maxConfigBytes, readConfig } from './manifests/config-blob.ts';
import { digestOf, isDigest } from './manifests/digest.ts';
import type { Endpoint } from './endpoints/endpoint.ts';
import { maxManifestBytes, readManifest, type Descriptor } from './manifests/manifest.ts';
import { acceptManifests } from './manifests/media-types.ts';
import { statusError, type Circumstances } from './outcome.ts';
import { contentOf, type ContentReader } from './manifests/platforms-of-index.ts';
import { RegistryError, type ManifestResult, type ManifestLookup } from './lookup.ts';
import { objectUrl } from './net/request-url.ts';
import { TransportError } from '../http/transport-error.ts';

/** Answers to a HEAD after which a GET may still work: the method is not known, or not here. */
const headUnknown: ReadonlySet<number> = new Set([405, 501]);

export interface EndpointVisit {
  readonly question: ManifestLookup;
  readonly endpoint: Endpoint;
  /** What may be sent to this endpoint. */
  readonly credential: MatchedCredential | undefined;
}

/**
 * Asks one endpoint.
 * @throws RegistryError for what it answered; TransportError and others for what went wrong on the way
 */
export async function askEndpoint(
  visit: EndpointVisit,
  parts: { readonly authenticator: Authenticator; readonly clock: Clock },
  signal: AbortSignal,
): Promise<ManifestResult> {
  const { question, endpoint, credential } = visit;
  const { repository, reference, knownDigest } = question;
  const about: Circumstances = { host: endpoint.host, repository, credential };
  let credentialUsed = false;
  let plain = false;

  async function send(
    method: 'GET' | 'HEAD',
    kind: 'manifests' | 'blobs',
    object: string,
  ): Promise<AuthenticatedAnswer> {
    const url = objectUrl(endpoint, repository, kind, object, plain ? 'http:' : undefined);
    if (!url) {
      throw new RegistryError('not-found', endpoint.host, `${endpoint.host}: no such name: ${repository}`);
    }
    const blob = kind === 'blobs';
    try {
      const answer = await parts.authenticator.send(
        {
          method,
          url,
          purpose: blob ? 'config' : 'manifest',
          accept: blob ? '*/*' : acceptManifests,
          maxBytes: blob ? maxConfigBytes : maxManifestBytes,
          endpoint,
          repository,
          credential,
          trace: question.trace,
        },
        signal,
      );
      credentialUsed ||= answer.credentialUsed;
      return answer;
    } catch (error) {
      if (plain || !mayFallBack(endpoint, url, error)) throw error;
      plain = true;
      return send(method, kind, object);
    }
  }

  async function fetch(kind: 'manifests' | 'blobs', object: string): Promise<AuthenticatedAnswer> {
    const answer = await send('GET', kind, object);
    if (answer.status !== 200) throw refusal(answer, about, parts.clock);
    return answer;
  }

  async function fetchDescribed(kind: 'manifests' | 'blobs', descriptor: Descriptor): Promise<Buffer> {
    const cap = kind === 'blobs' ? maxConfigBytes : maxManifestBytes;
    if (descriptor.size > cap) {
      throw new RegistryError(
        'too-large',
        endpoint.host,
        `${endpoint.host}: a document of more than ${cap} bytes`,
      );
    }
    const { body } = await fetch(kind, descriptor.digest);
    if (body.length !== descriptor.size)
      throw mismatch(about, 'its size is not the one it was announced with');
    verify(body, descriptor.digest, about);
    return body;
  }

  const reader: ContentReader = {
    where: endpoint.host,
    manifest: async (descriptor) =>
      readManifest(await fetchDescribed('manifests', descriptor), descriptor.mediaType),
    config: async (descriptor) => readConfig(await fetchDescribed('blobs', descriptor)),
  };

  const answered = (
    part: Pick<ManifestResult, 'unchanged' | 'digest' | 'mediaType' | 'kind' | 'platforms'>,
  ) => ({
    ...part,
    endpoint,
    ...(credential && credentialUsed ? { credential } : {}),
  });

  if (knownDigest !== undefined) {
    const head = await send('HEAD', 'manifests', reference);
    if (head.status !== 200 && !headUnknown.has(head.status)) throw refusal(head, about, parts.clock);
    const mediaType = head.headers['content-type']?.[0] ?? '';
    if (head.status === 200 && head.headers['docker-content-digest']?.[0] === knownDigest) {
      return answered({ unchanged: true, digest: knownDigest, mediaType, kind: 'image', platforms: [] });
    }
  }

  const answer = await fetch('manifests', reference);
  const announced = isDigest(reference) ? reference : answer.headers['docker-content-digest']?.[0];
  const digest = digestOf(answer.body, announced);
  if (announced !== undefined && isDigest(announced)) verify(answer.body, announced, about);
  const document = readManifest(answer.body, answer.headers['content-type']?.[0]);
  if (digest === knownDigest) {
    return answered({ unchanged: true, digest, mediaType: document.mediaType, kind: 'image', platforms: [] });
  }
  const content = await contentOf(document, digest, reader);
  return answered({ unchanged: false, digest, mediaType: document.mediaType, ...content });
}

/**
 * Whether https is followed by http (containerd's `httpFallback`): the peer answers in plain text or not at all during the
 * handshake, or nobody listens and the endpoint names no port. A certificate that does not hold never leads here.
 */
function mayFallBack(endpoint: Endpoint, url: URL, error: unknown): boolean {
  if (!endpoint.httpFallback || url.protocol !== 'https:' || !(error instanceof TransportError)) return false;
  if (error.where !== url.host) return false;
  if (error.failure === 'not-tls' || error.failure === 'tls-timeout') return true;
  return url.port === '' && (error.failure === 'connect' || error.failure === 'dial-timeout');
}

function refusal(answer: AuthenticatedAnswer, about: Circumstances, clock: Clock): RegistryError {
  const host = answer.moved ? answer.url.host : about.host;
  if (answer.moved && answer.status === 401) {
    const message = `${about.host}: it redirects to ${host}, which wants credentials and never gets any`;
    return new RegistryError('unauthorized', host, message);
  }
  return statusError(answer.status, { ...about, host }, answer.headers['retry-after']?.[0], clock.now());
}

function verify(bytes: Uint8Array, digest: string, about: Circumstances): void {
  if (digestOf(bytes, digest) !== digest)
    throw mismatch(about, 'its digest is not the one it was asked for by');
}

function mismatch({ host, repository }: Circumstances, what: string): RegistryError {
  return new RegistryError(
    'digest-mismatch',
    host,
    `${host}: a document of ${repository} is not genuine: ${what}`,
  );
}
