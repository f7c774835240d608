/** Media types of documents in registries (OCI image specification 1.1, distribution schema 2). */

export type DocumentKind = 'index' | 'manifest' | 'schema1';

const documentKinds: ReadonlyMap<string, DocumentKind> = new Map([
  ['application/vnd.oci.image.index.v1+json', 'index'],
  ['application/vnd.docker.distribution.manifest.list.v2+json', 'index'],
  ['application/vnd.oci.image.manifest.v1+json', 'manifest'],
  ['application/vnd.docker.distribution.manifest.v2+json', 'manifest'],
  ['application/vnd.docker.distribution.manifest.v1+prettyjws', 'schema1'],
  ['application/vnd.docker.distribution.manifest.v1+json', 'schema1'],
]);

/** Media types without meaning: then the document's own media type counts. */
const vague: ReadonlySet<string> = new Set([
  '',
  '*/*',
  'application/octet-stream',
  'application/json',
  'text/plain',
]);

const imageConfigs: ReadonlySet<string> = new Set([
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
]);

/**
 * Sent with every manifest request, always complete: some registries return schema 1 or only the first platform to clients that
 * do not accept an index.
 */
export const acceptManifests = [
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  '*/*',
].join(', ');

/** A media type without parameters, in lower case. */
export function bareMediaType(value: string | undefined): string {
  return (value ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** The kind of document; undefined for any other type. */
export function documentKind(mediaType: string): DocumentKind | undefined {
  return documentKinds.get(mediaType);
}

export function isVague(mediaType: string): boolean {
  return vague.has(mediaType);
}

export function isImageConfig(mediaType: string): boolean {
  return imageConfigs.has(mediaType);
}
