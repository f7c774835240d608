/**
 * The tags of a repository at one endpoint with one credential (distribution spec, "Listing tags").
 * Registries return them in pages. The address of the next page is not followed: only its `last` is taken
 * over.
 */
import { asText, parseObject } from '../http/json.ts';
import { EndpointLookup, type EndpointVisit, type LookupParts } from './lookup-at-endpoint.ts';
import type { TagList } from './manifest-lookup.ts';

const tagsPerPage = '1000';
/** A repository with more tags pushes them by machine; newer ones are rarely the first by name. */
const maxPages = 10;

/** @throws RegistryError for the response; TransportError and others for failures on the way */
export async function tagsAtEndpoint(
  visit: EndpointVisit,
  parts: LookupParts,
  signal: AbortSignal,
): Promise<TagList> {
  const endpoint = new EndpointLookup(visit, parts, signal);
  const tags: string[] = [];
  let last: string | undefined;
  for (let page = 0; page < maxPages; page += 1) {
    const query = { n: tagsPerPage, ...(last !== undefined && { last }) };
    const response = await endpoint.send('GET', 'tags', 'list', { query });
    if (response.status !== 200) throw endpoint.refusal(response);
    tags.push(...readTags(response.body));
    const next = nextTag(response.headers['link']?.[0]);
    if (next === undefined || next === last) return { tags, isComplete: true };
    last = next;
  }
  return { tags, isComplete: false };
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
