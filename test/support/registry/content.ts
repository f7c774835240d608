/** Content for the test registry: documents with bytes and digest. A push includes children and blobs. */
import { createHash } from 'node:crypto';

export const mediaTypes = {
  ociIndex: 'application/vnd.oci.image.index.v1+json',
  ociManifest: 'application/vnd.oci.image.manifest.v1+json',
  ociConfig: 'application/vnd.oci.image.config.v1+json',
  ociLayer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  dockerList: 'application/vnd.docker.distribution.manifest.list.v2+json',
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
  dockerConfig: 'application/vnd.docker.container.image.v1+json',
  dockerLayer: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
  schema1: 'application/vnd.docker.distribution.manifest.v1+prettyjws',
  helmConfig: 'application/vnd.cncf.helm.config.v1+json',
} as const;

export interface Content {
  readonly mediaType: string;
  readonly bytes: Buffer;
  readonly digest: string;
  readonly children: readonly Content[];
  readonly blobs: readonly Content[];
}

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly artifactType?: string;
}

/** An entry of an index: a document and its descriptor. */
export interface IndexEntry {
  readonly content: Content;
  /** As in the descriptor; omitted if undefined. */
  readonly platform?: Readonly<Record<string, unknown>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

/** Any document. An object is written as JSON; a text or bytes are unchanged. */
export function document(
  mediaType: string,
  body: unknown,
  parts: { children?: readonly Content[]; blobs?: readonly Content[] } = {},
): Content {
  const bytes =
    Buffer.isBuffer(body) || typeof body === 'string' ? Buffer.from(body) : Buffer.from(JSON.stringify(body));
  return {
    mediaType,
    bytes,
    digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}`,
    children: parts.children ?? [],
    blobs: parts.blobs ?? [],
  };
}

export function descriptor(content: Content, more: Partial<Descriptor> = {}): Descriptor {
  return { mediaType: content.mediaType, digest: content.digest, size: content.bytes.length, ...more };
}

/** `linux/arm64/v8` → the members of a platform object. */
export function platformOf(text: string): Record<string, string> {
  const [os = '', architecture = '', variant] = text.split('/');
  return { os, architecture, ...(variant === undefined ? {} : { variant }) };
}

interface ImageOptions {
  readonly flavor?: 'oci' | 'docker';
  readonly label?: string;
  readonly config?: Readonly<Record<string, unknown>>;
}

/** A single-platform image: manifest, config, one small layer. @param platform such as `linux/arm/v7` */
export function image(platform: string, options: ImageOptions = {}): Content {
  const docker = options.flavor === 'docker';
  const layer = document(
    docker ? mediaTypes.dockerLayer : mediaTypes.ociLayer,
    `layer of ${platform} ${options.label ?? ''}`,
  );
  const config = document(docker ? mediaTypes.dockerConfig : mediaTypes.ociConfig, {
    ...platformOf(platform),
    created: '2026-01-01T00:00:00Z',
    config: { Labels: { title: options.label ?? '' } },
    rootfs: { type: 'layers', diff_ids: [layer.digest] },
    ...options.config,
  });
  return manifest(config, [layer], docker ? 'docker' : 'oci');
}

export function manifest(
  config: Content,
  layers: readonly Content[],
  flavor: 'oci' | 'docker' = 'oci',
  more: Readonly<Record<string, unknown>> = {},
): Content {
  const mediaType = flavor === 'docker' ? mediaTypes.dockerManifest : mediaTypes.ociManifest;
  return document(
    mediaType,
    {
      schemaVersion: 2,
      mediaType,
      config: descriptor(config),
      layers: layers.map((layer) => descriptor(layer)),
      ...more,
    },
    { blobs: [config, ...layers] },
  );
}

/** An index over entries; `docker` makes it a manifest list. */
export function index(
  entries: readonly IndexEntry[],
  flavor: 'oci' | 'docker' = 'oci',
  more: Readonly<Record<string, unknown>> = {},
): Content {
  const mediaType = flavor === 'docker' ? mediaTypes.dockerList : mediaTypes.ociIndex;
  const manifests = entries.map(({ content, platform, annotations }) =>
    descriptor(content, {
      ...(platform === undefined ? {} : { platform }),
      ...(annotations === undefined ? {} : { annotations }),
    }),
  );
  return document(
    mediaType,
    { schemaVersion: 2, mediaType, manifests, ...more },
    { children: entries.map(({ content }) => content) },
  );
}

/** A multi-arch image: an index with one child per platform. @param platforms such as `['linux/amd64']` */
export function multiArch(
  platforms: readonly string[],
  options: ImageOptions & { readonly attestations?: boolean } = {},
): Content {
  const entries = platforms.map((platform) => ({
    content: image(platform, options),
    platform: platformOf(platform),
  }));
  const attestations =
    options.attestations === true ? entries.map(({ content }) => attestation(content)) : [];
  return index([...entries, ...attestations], options.flavor);
}

/** BuildKit's attestation of an image in an index: a manifest of platform `unknown/unknown`. */
export function attestation(subject: Content): IndexEntry {
  const layer = document('application/vnd.in-toto+json', { subject: subject.digest });
  const config = document(mediaTypes.ociConfig, { os: 'unknown', architecture: 'unknown' });
  return {
    content: manifest(config, [layer]),
    platform: { os: 'unknown', architecture: 'unknown' },
    annotations: {
      'vnd.docker.reference.digest': subject.digest,
      'vnd.docker.reference.type': 'attestation-manifest',
    },
  };
}

/** A Helm chart: an OCI manifest without an image config. */
export function helmChart(name = 'chart'): Content {
  const config = document(mediaTypes.helmConfig, { name, version: '1.0.0', apiVersion: 'v2' });
  return manifest(config, [document('application/vnd.cncf.helm.chart.content.v1.tar+gzip', `chart ${name}`)]);
}

/** An OCI 1.1 artifact: `artifactType` with the empty config. */
export function artifact(artifactType = 'application/vnd.example.model'): Content {
  const empty = document('application/vnd.oci.empty.v1+json', '{}');
  return manifest(empty, [document('application/octet-stream', 'weights')], 'oci', { artifactType });
}

/** A schema 1 manifest as old registries still serve it; the signature is not real. */
export function schema1(architecture = 'amd64'): Content {
  return document(mediaTypes.schema1, {
    schemaVersion: 1,
    name: 'library/old',
    tag: 'latest',
    architecture,
    fsLayers: [{ blobSum: `sha256:${'a'.repeat(64)}` }],
    history: [{ v1Compatibility: JSON.stringify({ architecture, os: 'linux' }) }],
    signatures: [{ signature: 'none' }],
  });
}
