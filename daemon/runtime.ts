/**
 * The container runtime of a node: from where it pulls an image, with which credentials, and what it is. Each
 * runtime has its folder (`containerd/`, `crio/`), which reads the runtime's own files below the host root.
 */
import type { LiveCredentialSource } from '../src/credentials/sources/file-source.ts';
import type { WatchOptions } from '../src/files/live.ts';
import type { NodeReport } from '../src/nodes/node-report.ts';
import type { EndpointSource } from '../src/registry/endpoints/endpoint.ts';
import type { Metrics } from '../src/telemetry/metrics.ts';

/**
 * A runtime is a credential source for descriptions and fingerprints only. Lookups of it are empty: its
 * credentials belong to hosts, so each endpoint has its own (`Endpoint.ownCredential`).
 */
export interface Runtime extends EndpointSource, LiveCredentialSource {
  /** One line for people. */
  description(): string;
  /** The kubelet's runtime, and how it pulls, as far as that is known. */
  report(): Pick<NodeReport, 'runtime' | 'pullMode'>;
}

export interface RuntimeOptions extends Omit<WatchOptions, 'root'> {
  /** Directory that stands for `/`. */
  readonly hostRoot: string;
  readonly metrics?: Metrics | undefined;
}
