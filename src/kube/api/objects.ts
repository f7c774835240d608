/**
 * The fields of Kubernetes objects that this program reads or writes, as in raw JSON. Unknown fields stay in
 * the object: it is never converted into a class or written back whole.
 */
export interface ObjectMeta {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly finalizers?: readonly string[];
  /** Counts changes of the spec, not of the status. */
  readonly generation?: number;
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: ObjectMeta | undefined;
}

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly imagePullPolicy?: string;
  readonly restartPolicy?: string;
}

export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

export interface NodeSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly NodeSelectorRequirement[];
  readonly matchFields?: readonly NodeSelectorRequirement[];
}

export interface PreferredSchedulingTerm {
  readonly weight: number;
  readonly preference: NodeSelectorTerm;
}

export interface NodeAffinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: {
    readonly nodeSelectorTerms: readonly NodeSelectorTerm[];
  };
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly PreferredSchedulingTerm[];
}

export interface Volume {
  readonly name: string;
  readonly image?: { readonly reference?: string; readonly pullPolicy?: string };
  readonly persistentVolumeClaim?: { readonly claimName: string };
}

export interface PodSpec {
  readonly runtimeClassName?: string | null;
  readonly nodeName?: string;
  readonly serviceAccountName?: string;
  readonly os?: { readonly name: string };
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: { readonly nodeAffinity?: NodeAffinity; readonly podAffinity?: PodAffinity };
  readonly tolerations?: readonly Toleration[];
  readonly schedulingGates?: readonly { readonly name: string }[];
  readonly imagePullSecrets?: readonly { readonly name?: string }[];
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly ephemeralContainers?: readonly Container[];
  readonly volumes?: readonly Volume[];
}

interface PodAffinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly { readonly topologyKey: string }[];
}

export interface Pod extends KubeObject {
  readonly spec: PodSpec;
}

/** The status of a pod or a node. */
export interface WithConditions {
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly reason?: string;
    readonly message?: string;
    readonly lastTransitionTime?: string;
  }[];
}

interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly running?: object;
  readonly terminated?: {
    readonly reason?: string;
    readonly exitCode?: number;
    readonly message?: string;
    readonly containerID?: string;
  };
}

export interface ContainerStatus {
  readonly name: string;
  readonly image?: string;
  readonly imageID?: string;
  /** `<runtime>://<id>` */
  readonly containerID?: string;
  readonly ready?: boolean;
  readonly restartCount?: number;
  readonly state?: ContainerState;
  readonly lastState?: ContainerState;
}

export interface PodWithStatus extends Pod {
  readonly status?: WithConditions & {
    readonly phase?: string;
    readonly podIP?: string;
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly ephemeralContainerStatuses?: readonly ContainerStatus[];
  };
}

export interface PodTemplate {
  readonly metadata?: ObjectMeta | undefined;
  readonly spec: PodSpec;
}

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

export interface Secret extends KubeObject {
  readonly type?: string;
  /** Values in base64. */
  readonly data?: Readonly<Record<string, string>>;
}

export interface ServiceAccount extends KubeObject {
  readonly imagePullSecrets?: readonly { readonly name?: string }[];
}

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface Node extends KubeObject {
  readonly spec?: { readonly taints?: readonly Taint[]; readonly unschedulable?: boolean };
  readonly status?: {
    readonly nodeInfo?: {
      readonly architecture?: string;
      readonly operatingSystem?: string;
      /** `containerd://2.1.4` */
      readonly containerRuntimeVersion?: string;
      readonly kernelVersion?: string;
    };
  };
}

/** Without pods behind the Service the API server writes `null` for its lists. */
export interface EndpointSlice extends KubeObject {
  readonly addressType?: string;
  readonly endpoints?:
    | readonly {
        readonly addresses: readonly string[];
        readonly conditions?: {
          readonly ready?: boolean;
          readonly serving?: boolean;
        };
        readonly nodeName?: string;
      }[]
    | null;
  readonly ports?: readonly { readonly name?: string; readonly port?: number }[] | null;
}

/** The API server sets `username` and `extra` from the credentials of the request. */
export interface CertificateSigningRequest extends KubeObject {
  readonly spec: {
    readonly signerName: string;
    readonly request: string;
    readonly usages?: readonly string[];
    readonly username?: string;
    readonly extra?: Readonly<Record<string, readonly string[]>>;
  };
  readonly status?: {
    readonly certificate?: string;
    readonly conditions?: readonly { readonly type: string; readonly message?: string }[];
  };
}

export interface AdmissionRequest {
  readonly uid: string;
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly resource: { readonly group: string; readonly version: string; readonly resource: string };
  readonly subResource?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly operation: string;
  readonly object?: unknown;
  readonly oldObject?: unknown;
  readonly dryRun?: boolean;
}

export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly status?: { readonly message: string; readonly code?: number };
  readonly patchType?: 'JSONPatch';
  /** Base64 of a JSON patch. */
  readonly patch?: string;
  readonly warnings?: readonly string[];
}

/** An RFC 3339 time of the API server's clock, in milliseconds since 1970; 0 if missing, invalid or no text. */
export function timeOf(text: unknown): number {
  return (typeof text === 'string' && Date.parse(text)) || 0;
}

/** Whether the condition `Ready` of a pod or node is true. */
export function isReady(status: WithConditions | undefined): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}
