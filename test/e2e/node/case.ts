/** A case: a node as it is configured, registries as they behave, and one image to pull. */
import type { PullAuth } from './cri.ts';
import type { ImageKind } from './images.ts';
import type { Behavior } from './registry.ts';
import type { Places } from './world.ts';

/** Files by their path on the node. */
export type NodeFiles = Readonly<Record<string, string>>;

export interface Case {
  /** For messages and the name of the repository. */
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
  /** As the kubelet passes it on. */
  readonly auth: PullAuth | undefined;
  /** Host → behavior; others answer 404. */
  readonly behaviors: ReadonlyMap<string, Behavior>;
}

/** A registry without authentication. */
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

/** Input for the cases. */
export interface Setting {
  readonly places: Places;
  /** Files that every node has beside its configuration: certificates. */
  readonly certificates: NodeFiles;
}
