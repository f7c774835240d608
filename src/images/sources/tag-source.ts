/** Tags of repositories, with the endpoints and credentials of image facts. */
import type { TagList } from '../../registry/manifest-lookup.ts';
import type { ImageRequest } from '../facts/facts.ts';
import { accessTo, type RegistrySourceOptions } from './registry-source.ts';

/** The tags of the image's repository. @throws RegistryError, CredentialError */
export type TagSource = (request: ImageRequest, signal: AbortSignal) => Promise<TagList>;

export function createTagSource(options: RegistrySourceOptions): TagSource {
  return async (request, signal) => {
    const { path } = request.reference;
    const { endpoints, credentials } = await accessTo(request, options, signal);
    return await options.registry.tags({ repository: path, endpoints, credentials }, signal);
  };
}
