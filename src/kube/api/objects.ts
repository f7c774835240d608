/** Kubernetes objects as raw JSON. They are never converted into classes or written back whole. */
import type * as Api from '@kubernetes/client-node';

/** The library's type of an object, as it is in JSON: times are strings. */
export type Json<T> = T extends Date
  ? string
  : T extends readonly (infer E)[]
    ? readonly Json<E>[]
    : T extends object
      ? { readonly [K in keyof T]: Json<T[K]> }
      : T;

export interface ObjectMeta extends Omit<Json<Api.V1ObjectMeta>, 'labels' | 'annotations'> {
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

export type OwnerReference = Json<Api.V1OwnerReference>;
export type Container = Json<Api.V1Container>;
export type Toleration = Json<Api.V1Toleration>;
export type NodeSelectorRequirement = Json<Api.V1NodeSelectorRequirement>;
export type NodeSelectorTerm = Json<Api.V1NodeSelectorTerm>;
export type PreferredSchedulingTerm = Json<Api.V1PreferredSchedulingTerm>;
export type Volume = Json<Api.V1Volume>;
export type PodSpec = Json<Api.V1PodSpec>;
export type Taint = Json<Api.V1Taint>;

export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: ObjectMeta | undefined;
}

export interface Pod extends KubeObject {
  readonly spec: PodSpec;
}

/** The status of a pod or a node. */
export interface WithConditions {
  readonly conditions?: Json<Api.V1PodCondition[]>;
}

export type ContainerStatus = Pick<Json<Api.V1ContainerStatus>, 'name'> &
  Partial<Json<Api.V1ContainerStatus>>;

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
  readonly imagePullSecrets?: PodSpec['imagePullSecrets'];
}

export interface Node extends KubeObject {
  readonly spec?: Pick<Json<Api.V1NodeSpec>, 'taints' | 'unschedulable'>;
  readonly status?: { readonly nodeInfo?: Partial<Json<Api.V1NodeSystemInfo>> };
}

/** Without pods behind the Service the API server writes `null` for its lists. */
export interface EndpointSlice extends KubeObject {
  readonly addressType?: string;
  readonly endpoints?: Json<Api.V1Endpoint[]> | null;
  readonly ports?: Json<Api.DiscoveryV1EndpointPort[]> | null;
}

/** The API server sets `username` and `extra` from the credentials of the request. */
export interface CertificateSigningRequest extends KubeObject {
  readonly spec: Json<Api.V1CertificateSigningRequestSpec>;
  readonly status?: Json<Api.V1CertificateSigningRequestStatus>;
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

/** The text of a key of a Secret; empty without the key. */
export function secretText({ data }: Secret, key: string): string {
  return Buffer.from(data?.[key] ?? '', 'base64').toString('utf8');
}
