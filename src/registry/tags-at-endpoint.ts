/**
 * The tags of a repository at one endpoint with one credential (distribution spec, "Listing tags").
 * Registries return them in pages. The address of the next page is not followed: only its `last` is taken
 * over.
 */
import type { MatchedCredential } from '../credentials/credential.ts';
import { asText, parseObject } from '../http/json.ts';
import type { Authenticator } from './auth/authenticator.ts';
import type { Endpoint } from './endpoints/endpoint.ts';
import { mayFallBack, objectUrl } from './lookup-at-endpoint.ts';
import { RegistryError, type TagList } from './manifest-lookup.ts';
import { statusError } from './outcome.ts';

/** 1,000 tags of 128 characters, and the JSON around them. */
const maxTagBytes = 256 * 1024;
const tagsPerPage = 1000;
/** A repository with more tags pushes them by machine; newer ones are rarely the first by name. */
const maxPages = 10;

export interface TagVisit {
  readonly repository: string;
  readonly endpoint: Endpoint;
  readonly credential: MatchedCredential | undefined;
}

/** @throws RegistryError for the response; TransportError and others for failures on the way */
export async function tagsAtEndpoint(
  visit: TagVisit,
  { authenticator, now }: { readonly authenticator: Authenticator; readonly now: () => number },
  signal: AbortSignal,
): Promise<TagList> {
  const { endpoint, repository, credential } = visit;
  const tags: string[] = [];
  let last: string | undefined;
  for (let page = 0; page < maxPages; page += 1) {
    const response = await send(visit, last, authenticator, signal);
    const { status, headers, body, credentialUsed } = response;
    if (status !== 200) {
      const about = { host: endpoint.host, repository, credential, isUnsent: !credentialUsed };
      throw statusError(status, about, headers['retry-after']?.[0], now());
    }
    tags.push(...readTags(body));
    const next = nextTag(headers['link']?.[0]);
    if (next === undefined || next === last) return { tags, isComplete: true };
    last = next;
  }
  return { tags, isComplete: false };
}

async function send(
  visit: TagVisit,
  last: string | undefined,
  authenticator: Authenticator,
  signal: AbortSignal,
  scheme?: 'http:',
): ReturnType<Authenticator['send']> {
  const { endpoint, repository, credential } = visit;
  const url = objectUrl(endpoint, repository, 'tags', 'list', scheme);
  if (!url)
    throw new RegistryError('not-found', endpoint.host, `${endpoint.host}: no such name: ${repository}`);
  url.searchParams.set('n', String(tagsPerPage));
  if (last !== undefined) url.searchParams.set('last', last);
  try {
    return await authenticator.send(
      {
        method: 'GET',
        url,
        purpose: 'tags',
        accept: 'application/json',
        maxBytes: maxTagBytes,
        endpoint,
        repository,
        credential,
        trace: undefined,
      },
      signal,
    );
  } catch (error) {
    if (scheme !== undefined || !mayFallBack(endpoint, url, error)) throw error;
    return await send(visit, last, authenticator, signal, 'http:');
  }
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
