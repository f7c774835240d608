/**
 * Images that containerd really unpacks, each case with a document of its own, so that nothing of an earlier pull answers
 * for it. All share one layer, which is there after the first pull.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import {
  document,
  index,
  manifest,
  mediaTypes,
  platformOf,
  type Content,
} from '../../support/registry/content.ts';
import type { Stock } from './registry.ts';

export const imageKinds = ['multi', 'single', 'single-other', 'other-only'] as const;
/** `single-other`: one manifest for an architecture that is not this node's; `other-only`: an index without it. */
export type ImageKind = (typeof imageKinds)[number];

/** One empty tar archive: two blocks of zeros. */
const archive = Buffer.alloc(1024);
const layer = document(mediaTypes.ociLayer, gzipSync(archive));
const diffId = `sha256:${createHash('sha256').update(archive).digest('hex')}`;

const platforms: Readonly<Record<ImageKind, readonly string[]>> = {
  multi: ['linux/amd64', 'linux/arm64', 'linux/s390x'],
  single: ['linux/amd64'],
  'single-other': ['linux/s390x'],
  'other-only': ['linux/s390x', 'linux/ppc64le'],
};

/** @param label makes otherwise equal images differ */
export function makeImage(kind: ImageKind, label: string): Content {
  const images = platforms[kind].map((platform) => {
    const config = document(mediaTypes.ociConfig, {
      ...platformOf(platform),
      config: { Labels: { title: label } },
      rootfs: { type: 'layers', diff_ids: [diffId] },
    });
    return { content: manifest(config, [layer]), platform: platformOf(platform) };
  });
  const [first] = images;
  return kind.startsWith('single') && first ? first.content : index(images);
}

/** What the registries of a case have: an image by tag `1` and by digest, and another for those that are behind. */
export function makeStock(
  repository: string,
  kind: ImageKind,
): { readonly stock: Stock; readonly digest: string } {
  const current = makeImage(kind, repository);
  const stale = makeImage(kind, `${repository} of yesterday`);
  // By digest a mirror that is behind has both.
  const digests = [...objectsOf(current), ...objectsOf(stale)];
  return {
    stock: {
      repository,
      objects: new Map([...digests, ['1', current]]),
      staleObjects: new Map([...digests, ['1', stale]]),
    },
    digest: current.digest,
  };
}

function objectsOf(content: Content): [string, Content][] {
  const parts = [...content.children, ...content.blobs];
  return [[content.digest, content], ...parts.flatMap((part) => objectsOf(part))];
}
