/**
 * Manifests and indexes. The media type of the response counts first, then the document's own. If the two
 * contradict each other, or a document has the members of two kinds, it is rejected as by containerd
 * (`core/images/image.go`, `validateMediaType`).
 */
import { asObject, asText, InvalidDocument, parseObject, type JsonObject } from '../../http/json.ts';
import type { WrittenPlatform } from '../manifest-lookup.ts';
import { createHash } from 'node:crypto';

/** Above 4,393,216 bytes (4 · 1048 · 1048) containerd skips a host; this limit is a little lower. */
export const maxManifestBytes = 4 * 1024 * 1024;

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: WrittenPlatform;
  readonly artifactType?: string;
  /** Provenance that BuildKit adds; not an image. */
  readonly attestation: boolean;
}

export type ManifestDocument =
  | {
      readonly kind: 'index';
      readonly mediaType: string;
      readonly children: readonly Descriptor[];
      readonly artifactType?: string;
    }
  | {
      readonly kind: 'manifest';
      readonly mediaType: string;
      readonly config: Descriptor;
      /** The config is of an image type. */
      readonly imageConfig: boolean;
      /** It calls itself an artifact, or belongs to another manifest. */
      readonly claimsArtifact: boolean;
    }
  | { readonly kind: 'schema1'; readonly mediaType: string; readonly architecture: string };

/**
 * @param contentType of the response, or of the descriptor
 * @throws InvalidDocument if it is not a manifest of a known kind
 */
export function readManifest(bytes: Uint8Array, contentType: string | undefined): ManifestDocument {
  const document = parseObject(bytes);
  const mediaType = mediaTypeOf(document, bareMediaType(contentType));
  const kind = documentKind(mediaType);
  if (kind === undefined) throw new InvalidDocument('its media type is not that of an image');
  refuseMixed(document, kind);
  if (kind === 'index') return readIndex(document, mediaType);
  if (kind === 'manifest') return readSingle(document, mediaType);
  const architecture = textOf(document['architecture']);
  if (architecture === undefined) throw new InvalidDocument('a schema 1 manifest without architecture');
  return { kind, mediaType, architecture };
}

function textOf(value: unknown): string | undefined {
  return asText(value) || undefined;
}

function mediaTypeOf(document: JsonObject, header: string): string {
  const written = bareMediaType(asText(document['mediaType']));
  const [kind, claimed] = [documentKind(header), documentKind(written)];
  if (vague.has(header)) return claimed === undefined ? sniff(document) : written;
  // A Docker index that calls itself an OCI index is pulled.
  if (kind !== 'schema1' && claimed !== undefined && claimed !== kind) {
    throw new InvalidDocument('its media type differs from the one in the response');
  }
  return header;
}

/** OCI documents need not name their media type. */
function sniff(document: JsonObject): string {
  if (Array.isArray(document['manifests'])) return 'application/vnd.oci.image.index.v1+json';
  if (asObject(document['config'])) return 'application/vnd.oci.image.manifest.v1+json';
  if (document['schemaVersion'] === 1 && Array.isArray(document['fsLayers'])) {
    return 'application/vnd.docker.distribution.manifest.v1+json';
  }
  throw new InvalidDocument('it is neither a manifest nor an index');
}

const foreignMembers = {
  index: ['config', 'layers', 'fsLayers'],
  manifest: ['manifests', 'fsLayers'],
  schema1: ['manifests', 'config', 'layers'],
} as const;

function refuseMixed(document: JsonObject, kind: DocumentKind): void {
  if (foreignMembers[kind].some((name) => document[name] !== undefined && document[name] !== null)) {
    throw new InvalidDocument('it mixes the members of several kinds of manifest');
  }
}

function readIndex(document: JsonObject, mediaType: string): ManifestDocument {
  const manifests = document['manifests'];
  if (!Array.isArray(manifests)) throw new InvalidDocument('an index without manifests');
  const artifactType = textOf(document['artifactType']);
  const children = manifests.map((entry) => readDescriptor(entry));
  return { kind: 'index', mediaType, children, ...(artifactType && { artifactType }) };
}

function readSingle(document: JsonObject, mediaType: string): ManifestDocument {
  const config = readDescriptor(document['config']);
  const imageConfig = isImageConfig(config.mediaType);
  const claimsArtifact =
    textOf(document['artifactType']) !== undefined || asObject(document['subject']) !== undefined;
  return { kind: 'manifest', mediaType, config, imageConfig, claimsArtifact };
}

function readDescriptor(value: unknown): Descriptor {
  const written = asObject(value);
  const digest = asText(written?.['digest']);
  if (!written || digest === undefined || !isDigest(digest)) {
    throw new InvalidDocument('a descriptor without a usable digest');
  }
  const size = written['size'];
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw new InvalidDocument('a descriptor without a usable size');
  }
  const platform = readPlatform(written['platform']);
  const artifactType = textOf(written['artifactType']);
  const annotations = asObject(written['annotations']);
  return {
    mediaType: bareMediaType(asText(written['mediaType'])),
    digest,
    size,
    attestation: annotations?.['vnd.docker.reference.type'] === 'attestation-manifest',
    ...(platform && { platform }),
    ...(artifactType && { artifactType }),
  };
}

/** A platform object of an index or an image config. @returns undefined if it names no architecture */
export function readPlatform(value: unknown): WrittenPlatform | undefined {
  const written = asObject(value);
  const architecture = textOf(written?.['architecture']);
  if (!written || architecture === undefined) return undefined;
  const variant = textOf(written['variant']);
  const osVersion = textOf(written['os.version']);
  const features = written['os.features'];
  return {
    os: asText(written['os']) ?? '',
    architecture,
    ...(variant && { variant }),
    ...(osVersion && { osVersion }),
    ...(Array.isArray(features) && features.length > 0 && { needsFeatures: true as const }),
  };
}

type DocumentKind = 'index' | 'manifest' | 'schema1';

const documentKinds: ReadonlyMap<string, DocumentKind> = new Map([
  ['application/vnd.oci.image.index.v1+json', 'index'],
  ['application/vnd.docker.distribution.manifest.list.v2+json', 'index'],
  ['application/vnd.oci.image.manifest.v1+json', 'manifest'],
  ['application/vnd.docker.distribution.manifest.v2+json', 'manifest'],
  ['application/vnd.docker.distribution.manifest.v1+prettyjws', 'schema1'],
  ['application/vnd.docker.distribution.manifest.v1+json', 'schema1'],
]);

/** Media types without meaning: then the document's own media type counts. */
const vague = new Set(['', '*/*', 'application/octet-stream', 'application/json', 'text/plain']);

/** Always complete: without an index, some registries return schema 1 or only the first platform. */
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

export function documentKind(mediaType: string): DocumentKind | undefined {
  return documentKinds.get(mediaType);
}

export function isImageConfig(mediaType: string): boolean {
  const docker = 'application/vnd.docker.container.image.v1+json';
  return mediaType === 'application/vnd.oci.image.config.v1+json' || mediaType === docker;
}

/** Whether a text is a digest that can be verified. OCI registers sha256 and sha512; nodes take sha384 too. */
export function isDigest(text: string): boolean {
  return /^(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$/.test(text);
}

/** @param like a digest of the algorithm to use. Default: sha256 */
export function digestOf(bytes: Uint8Array, like?: string): string {
  const algorithm = ['sha384', 'sha512'].find((name) => like?.startsWith(`${name}:`)) ?? 'sha256';
  return `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
}
