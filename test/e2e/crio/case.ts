/** A case: a node with CRI-O as it is configured, registries as they behave, and one image to pull. */
import type { ImageKind, NodeFiles } from '../node/case.ts';
import type { PullAuth } from '../node/cri.ts';
import type { Behavior } from '../node/registry.ts';

export interface Case {
  readonly name: string;
  /** `REPOSITORY` stands for the repository of the case, such as `team/c17`. */
  readonly files: NodeFiles;
  /** `global_auth_file`; empty: the files that CRI-O's library searches. */
  readonly globalAuthFile: string;
  readonly shortNameMode: 'enforcing' | 'disabled';
  /** Paths by variable. */
  readonly environment: Readonly<Record<string, string>>;
  /** Registry domain, as the pod writes it; empty: a short name. */
  readonly domain: string;
  readonly by: 'tag' | 'digest' | 'both';
  readonly image: ImageKind;
  /** What the kubelet has for the image. */
  readonly login: PullAuth | undefined;
  /** Host → behavior. */
  readonly behaviors: ReadonlyMap<string, Behavior>;
}
