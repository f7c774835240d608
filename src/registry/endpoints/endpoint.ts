/**
 * An endpoint is a URL base that serves a registry namespace: the origin itself or a mirror of it, with
 * everything that a request to it needs. Endpoint sources decide which endpoints a namespace has, and their
 * order: archwright's `proxies`, then the endpoints of the node's containerd, else the origin by containerd's
 * defaults.
 */
import type { MatchedCredential } from '../../credentials/credential.ts';
import type { TlsSettings } from '../../http/tls/trust.ts';
import { reveal, type Secret } from '../../telemetry/secret.ts';

interface EndpointHeader {
  readonly name: string;
  readonly value: Secret;
}

/** Headers by name. Several values become one list, which HTTP treats like several lines. */
export function headersOf(headers: readonly EndpointHeader[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { name, value } of headers) {
    const key = name.toLowerCase();
    const before = found[key];
    const separator = key === 'cookie' ? '; ' : ', ';
    found[key] = before === undefined ? reveal(value) : `${before}${separator}${reveal(value)}`;
  }
  return found;
}

export interface Endpoint {
  /** `scheme://host[:port]/path` before `/<repository>/manifests/…`; usually ends in `/v2`. */
  readonly base: string;
  /** Host and port as written, for people and for limits. */
  readonly host: string;
  /** The registry namespace it serves, such as `docker.io`. */
  readonly namespace: string;
  /** Whether `?ns=<namespace>` is appended: for every host other than the namespace, as in containerd. */
  readonly namespaceParameter: boolean;
  /** https first, then http if the peer does not speak TLS. Only for loopback and if configured. */
  readonly httpFallback: boolean;
  /** May turn a tag into a digest. */
  readonly resolve: boolean;
  readonly pull: boolean;
  readonly tls: TlsSettings;
  /** Sent with every request to this host, and only there. Values may be secret. */
  readonly headers: readonly EndpointHeader[];
  /** Sent to its token server too; headers that authenticate only if that is the same host. */
  readonly tokenHeaders?: readonly EndpointHeader[];
  readonly dialTimeoutMs?: number;
  /** Whether credentials matched for the namespace may be sent here. */
  readonly acceptsCredentials: boolean;
  /** Offered only to this endpoint, and only if there is no other credential for the namespace. */
  readonly ownCredential?: MatchedCredential;
  /** Source: `default`, `proxies`, `insecureRegistries`, or a file. */
  readonly origin: string;
}

export interface EndpointSource {
  /** In the order of use. @param namespace a registry domain such as `docker.io` or `localhost:5000` */
  endpoints(namespace: string): Promise<readonly Endpoint[]>;
  /** A hash over the configuration behind it; reveals nothing. */
  fingerprint(): string;
}
