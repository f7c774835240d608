/** Tags of repositories, with the endpoints and credentials of image facts. */
import type { TagList } from '../../registry/manifest-lookup.ts';
import type { ImageFacts, ImageRequest } from '../facts/facts.ts';
import { pullReference } from '../references/reference.ts';
import { accessTo, creditedTo, type RegistrySourceOptions } from './registry-source.ts';

/** With the credential that gave access, as of image facts. */
export interface ListedTags extends TagList, Pick<ImageFacts, 'credentialSource'> {}

/** The tags of the image's repository. @throws RegistryError, CredentialError */
export type TagSource = (request: ImageRequest, signal: AbortSignal) => Promise<ListedTags>;

export function createTagSource(options: RegistrySourceOptions): TagSource {
  return async (request, signal) => {
    const { path } = pullReference(request.reference);
    const { endpoints, credentials, ofNode } = await accessTo(request, options, signal);
    const lookup = { repository: path, endpoints, credentials };
    const { credential, ...list } = await options.registry.tags(lookup, signal);
    return { ...list, credentialSource: creditedTo(credential, ofNode) };
  };
}
