/** A case: a node as it is configured, registries as they behave, and one image to pull. */
import type { PullAuth } from './cri.ts';
import type { ImageKind } from './images.ts';
import type { Behavior } from './registry.ts';
import type { Places } from './world.ts';

/** Files by their path on the node. */
export type NodeFiles = Readonly<Record<string, string>>;

export interface Case {
  /** For people and for the name of the repository. */
  readonly name: string;
  /** What containerd reads at its start: `/etc/containerd/config.toml` and what it imports. */
  readonly configuration: NodeFiles;
  /** What it reads at each pull: directories of hosts. */
  readonly hosts: NodeFiles;
  /** Registry domain of the image, as the pod writes it. */
  readonly domain: string;
  /** What the reference ends with; a digest goes before a tag. */
  readonly by: 'tag' | 'digest' | 'both';
  readonly image: ImageKind;
  /** As the kubelet passes it on. */
  readonly auth: PullAuth | undefined;
  /** Host → what it does; the others say 404. */
  readonly behaviors: ReadonlyMap<string, Behavior>;
}

/** A registry that serves everybody. */
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

/** What is needed to write cases. */
export interface Setting {
  readonly places: Places;
  /** Files that every node has beside its configuration: certificates. */
  readonly certificates: NodeFiles;
}
