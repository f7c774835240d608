/** Images as OCI layouts on disk, for real clients to push: three JSON files and one small layer. */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const types = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
} as const;

export interface LayoutPlatform {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: LayoutPlatform;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface Layout {
  /** A manifest for one platform, with its config and layer. */
  image(platform: LayoutPlatform): Descriptor;
  /** What BuildKit puts beside an image: a manifest for `unknown/unknown` that refers to it. */
  attestation(subject: Descriptor): Descriptor;
  /** Content that is no image: a config type of its own, as Helm charts and models have. */
  artifact(): Descriptor;
  index(...children: readonly Descriptor[]): Descriptor;
  /** Writes the layout with this descriptor under the name `1`. */
  finish(root: Descriptor): string;
}

/** Starts a layout in an empty directory. */
export function createLayout(directory: string): Layout {
  const blobs = join(directory, 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });

  function blob(mediaType: string, content: Buffer | string): Descriptor {
    const bytes = Buffer.from(content);
    const hex = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(join(blobs, hex), bytes);
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
  }

  function json(mediaType: string, content: object): Descriptor {
    return blob(mediaType, JSON.stringify(content));
  }

  const empty = Buffer.alloc(1024);
  const layer = blob(types.layer, gzipSync(empty));
  const diffId = `sha256:${createHash('sha256').update(empty).digest('hex')}`;

  function manifest(config: Descriptor, more: object = {}): Descriptor {
    return json(types.manifest, {
      schemaVersion: 2,
      mediaType: types.manifest,
      config,
      layers: [layer],
      ...more,
    });
  }

  return {
    image: (platform) => {
      const config = json(types.config, {
        ...platform,
        config: { Entrypoint: ['/app'] },
        rootfs: { type: 'layers', diff_ids: [diffId] },
      });
      return { ...manifest(config), platform };
    },
    attestation: (subject) => ({
      ...manifest(
        json(types.config, {
          os: 'unknown',
          architecture: 'unknown',
          config: {},
          rootfs: { type: 'layers', diff_ids: [diffId] },
        }),
      ),
      platform: { os: 'unknown', architecture: 'unknown' },
      annotations: {
        'vnd.docker.reference.type': 'attestation-manifest',
        'vnd.docker.reference.digest': subject.digest,
      },
    }),
    artifact: () =>
      manifest(
        json('application/vnd.cncf.helm.config.v1+json', {
          name: 'chart',
          version: '1.0.0',
          apiVersion: 'v2',
        }),
      ),
    index: (...children) =>
      json(types.index, { schemaVersion: 2, mediaType: types.index, manifests: children }),
    finish: (root) => {
      writeFileSync(join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
      const { platform: _platform, ...descriptor } = root;
      const named = { ...descriptor, annotations: { 'org.opencontainers.image.ref.name': '1' } };
      writeFileSync(join(directory, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [named] }));
      return directory;
    },
  };
}
