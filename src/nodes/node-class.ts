/**
 * Everything on which it depends whether a node can run an image. Nodes with equal fields decide alike. An
 * absent field is not known: the decision then allows everything that it could be.
 */
export interface NodeClass {
  readonly os: string;
  /** GOARCH of the kubelet, as in the label `kubernetes.io/arch`. */
  readonly architecture: string;
  readonly runtime?: {
    /** The text before `://` in the node's `containerRuntimeVersion`: `containerd`, `cri-o`, `docker` or another. */
    readonly name: string;
    /** No leading `v`: `2.1.4`. */
    readonly version: string;
  };
  /** How containerd pulls. `transfer` exists since 2.1. */
  readonly pullMode?: PullMode;
  /** The variant of containerd's own default platform on arm and arm64, such as `v7` or `v8`. */
  readonly armVariant?: string;
  /** The psABI level of an amd64 CPU. */
  readonly amd64Level?: Amd64Level;
  /** Whether an arm64 CPU runs 32-bit programs. */
  readonly aarch32?: boolean;
  /** Bytes, for `explain`. No decision uses it, because no image states the page size that it needs. */
  readonly pageSize?: number;
  /** Version of Windows, such as `10.0.20348`. */
  readonly osVersion?: string;
}

export type PullMode = 'local' | 'transfer';
export type Amd64Level = 1 | 2 | 3 | 4;
