/**
 * The handlers by kind of vector. Names of kinds are unique over all files, so files may have any name. To
 * add kinds, export a `Handlers` map from a file of this folder (see `handler.ts`) and list it in `all`.
 */
import { containerdConfig } from './containerd-config.ts';
import { containerdHosts } from './containerd-hosts.ts';
import { credentialProviderConfig } from './credential-provider-config.ts';
import { credentialProviders } from './credential-providers.ts';
import { credentials } from './credentials.ts';
import { crioCredentials } from './crio-credentials.ts';
import { crioEndpoints } from './crio-endpoints.ts';
import { crioPlatforms } from './crio-platforms.ts';
import type { Handler, Handlers } from './handler.ts';
import { imageReferences } from './image-references.ts';
import { platforms } from './platforms.ts';
import { registryAuthentication } from './registry-authentication.ts';

const all: readonly Handlers[] = [
  imageReferences,
  platforms,
  registryAuthentication,
  credentials,
  credentialProviderConfig,
  credentialProviders,
  containerdHosts,
  containerdConfig,
  crioCredentials,
  crioEndpoints,
  crioPlatforms,
];

const handlers: ReadonlyMap<string, Handler> = new Map(all.flatMap((map) => Object.entries(map)));

/** Kinds that describe another library or program, kept in the files for comparison. */
const foreign: ReadonlySet<string> = new Set([
  'containerd_spec',
  // Addresses of registries as texts; we compare URLs, as `validate_realm` shows.
  'canonical_address',
  // The host rules of the ECR plugin: we run the plugin, we do not replace it.
  'region_from_host',
  'private_host',
  'host_from_image',
  'cache_duration',
  // Parts of c/image: its list of platforms, of which `choose_instance` shows the effect, and media types, which
  // we read from documents too.
  'wanted_platforms',
  'guess_mime',
  'normalize_mime',
  'content_type',
  // Podman logs in by such keys; a repository is always a valid one.
  'validate_key',
  // The kubelet sends CRI-O a user name and a password, nothing else.
  'cri_auth',
  // Files of CRI-O's credential provider, which last for seconds: we never read them.
  'namespaced_path',
  'namespaced_lookup',
  'provider_merge',
]);

export function handlerOf(kind: string): Handler | undefined {
  return handlers.get(kind);
}

export function isForeign(kind: string): boolean {
  return kind.startsWith('ggcr_') || foreign.has(kind);
}
