/**
 * An endpoint is a URL base that serves an image: its registry or a mirror of it, with everything that a
 * request to it needs. Endpoint sources decide which endpoints an image has, and their order: archwright's
 * `proxies`, then the endpoints of the node's container runtime, else the registry by containerd's defaults.
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

/** What a node pulls: a normalized reference with a tag or a digest. */
export interface PullTarget {
  /** A registry domain such as `docker.io` or `localhost:5000`. */
  readonly domain: string;
  /** `domain/path`. */
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: string;
  /** The name as the pod writes it, where the runtime finds its registry by itself (CRI-O). */
  readonly shortName?: string;
}

export interface Endpoint {
  /** `scheme://host[:port]/path` before `/<repository>/manifests/…`; usually ends in `/v2`. */
  readonly base: string;
  /** Host and port as written, for people and for limits. */
  readonly host: string;
  /** The registry namespace it serves, such as `docker.io`. */
  readonly namespace: string;
  /** The name that the runtime found for the image, before mirrors; `path` is without the domain. */
  readonly resolved?: { readonly domain: string; readonly path: string };
  /** Path of the repository there, if it differs from the one of the image. */
  readonly repository?: string;
  /** Why the runtime sends no request to it; another endpoint may serve the image. */
  readonly refusal?: Error;
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
  /** The own credential also stands in for others that are not accepted, or have no user name (CRI-O). */
  readonly prefersOwn?: true;
  /** Why there is no own credential: the endpoint fails where it would be offered. */
  readonly ownFailure?: Error;
  /** Source: `default`, `proxies`, `insecureRegistries`, or a file. */
  readonly origin: string;
}

export interface EndpointSource {
  /** In the order of use. */
  endpoints(target: PullTarget): Promise<readonly Endpoint[]>;
  /** A hash over the configuration behind it; reveals nothing. */
  fingerprint(): string;
}
