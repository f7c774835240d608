/** A case: a node as it is configured, registries as they behave, and one image to pull. */
import type { PullAuth } from './cri.ts';
import type { Content } from '../../support/registry/content.ts';
import { emptyTar, unpackable, unpackableIndex } from '../layout.ts';
import type { Behavior, Stock } from './registry.ts';

export type NodeFiles = Readonly<Record<string, string>>;

export interface Case {
  readonly name: string;
  /** Read by containerd at its start: `/etc/containerd/config.toml` and its imports. */
  readonly configuration: NodeFiles;
  /** Read at each pull: directories of hosts. */
  readonly hosts: NodeFiles;
  /** Registry domain of the image, as the pod writes it. */
  readonly domain: string;
  /** The end of the reference. With both, the digest counts. */
  readonly by: 'tag' | 'digest' | 'both';
  readonly image: ImageKind;
  readonly auth: PullAuth | undefined;
  /** Host → behavior; others return 404. */
  readonly behaviors: ReadonlyMap<string, Behavior>;
}

export const openRegistry: Behavior = {
  answer: 'image',
  auth: 'open',
  anonymous: true,
  post: true,
  stale: false,
};

/** The namespace that containerd sees for a domain. */
export function namespaceOf(domain: string): string {
  return domain === 'index.docker.io' ? 'docker.io' : domain;
}

/** `single-other`: one manifest for another architecture than the node's; `other-only`: such an index. */
const platforms = {
  multi: ['linux/amd64', 'linux/arm64', 'linux/s390x'],
  single: ['linux/amd64'],
  'single-other': ['linux/s390x'],
  'other-only': ['linux/s390x', 'linux/ppc64le'],
} as const satisfies Record<string, readonly [string, ...string[]]>;
export type ImageKind = keyof typeof platforms;

function makeImage(kind: ImageKind, label: string): Content {
  const config = { Labels: { title: label } };
  const [first] = platforms[kind];
  return kind.startsWith('single')
    ? unpackable(first, emptyTar, config)
    : unpackableIndex(platforms[kind], emptyTar, config);
}

/**
 * Contents of a case's registries: an image by tag `1` and by digest, and another for stale mirrors. Each
 * case has its own documents, unaffected by earlier pulls. All share one layer, present after the first pull.
 */
export function makeStock(repository: string, kind: ImageKind): { stock: Stock; digest: string } {
  const current = makeImage(kind, repository);
  const stale = makeImage(kind, `${repository} of yesterday`);
  // A stale mirror has both by digest.
  const digests = [...objectsOf(current), ...objectsOf(stale)];
  const objects = new Map([...digests, ['1', current]]);
  const staleObjects = new Map([...digests, ['1', stale]]);
  return { stock: { repository, objects, staleObjects }, digest: current.digest };
}

function objectsOf(content: Content): [string, Content][] {
  const parts = [...content.children, ...content.blobs];
  return [[content.digest, content], ...parts.flatMap((part) => objectsOf(part))];
}
