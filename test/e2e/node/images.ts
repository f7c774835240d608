/**
 * Images that containerd unpacks. Each case has its own documents, so that nothing of an earlier pull answers for it. All share one
 * layer, which is there after the first pull.
 */
import type { Content } from '../../support/registry/content.ts';
import { emptyTar, unpackable, unpackableIndex } from '../layout.ts';
import type { Stock } from './registry.ts';

export const imageKinds = ['multi', 'single', 'single-other', 'other-only'] as const;
/** `single-other`: one manifest for an architecture that is not this node's; `other-only`: an index without it. */
export type ImageKind = (typeof imageKinds)[number];

const platforms: Readonly<Record<ImageKind, readonly string[]>> = {
  multi: ['linux/amd64', 'linux/arm64', 'linux/s390x'],
  single: ['linux/amd64'],
  'single-other': ['linux/s390x'],
  'other-only': ['linux/s390x', 'linux/ppc64le'],
};

/** @param label makes otherwise equal images differ */
export function makeImage(kind: ImageKind, label: string): Content {
  const config = { Labels: { title: label } };
  const [first = ''] = platforms[kind];
  return kind.startsWith('single')
    ? unpackable(first, emptyTar, config)
    : unpackableIndex(platforms[kind], emptyTar, config);
}

/** Contents of a case's registries: an image by tag `1` and by digest, and another for mirrors that are behind. */
export function makeStock(
  repository: string,
  kind: ImageKind,
): { readonly stock: Stock; readonly digest: string } {
  const current = makeImage(kind, repository);
  const stale = makeImage(kind, `${repository} of yesterday`);
  // A mirror that is behind has both by digest.
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
