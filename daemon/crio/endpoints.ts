/**
 * The endpoints of an image as the node's CRI-O would use them: the candidates of a short name, for each its
 * mirrors and its location (`pull-sources.ts`), with their certificates (`certs-d.ts`) and credentials
 * (`auth-files.ts`). What stops CRI-O at one endpoint is the endpoint's refusal, because CRI-O goes on to the
 * next one.
 */
import type { Endpoint, PullTarget } from '../../src/registry/endpoints/endpoint.ts';
import { RegistryError } from '../../src/registry/manifest-lookup.ts';
import { orBroken } from '../node-files.ts';
import { ConfigFileError, InvalidConfig } from '../toml.ts';
import type { AuthFiles, CredentialHelpers } from './auth-files.ts';
import type { Certificates } from './certs-d.ts';
import type { CrioConf, ShortNameMode } from './crio-conf.ts';
import { rejectionOf, type PolicyFile } from './policy.ts';
import { parseCanonical, pullSources, resolveShortName, type PullSource } from './pull-sources.ts';
import type { RegistriesConf } from './registries-conf.ts';

/** What CRI-O has read. */
export interface CrioNode {
  readonly conf: CrioConf;
  readonly registries: RegistriesConf;
  readonly shortNameMode: ShortNameMode;
}

/** What CRI-O reads for each pull. */
export interface PullFiles {
  readonly authFiles: AuthFiles;
  readonly policy: PolicyFile | ConfigFileError | undefined;
  readonly certificates: Certificates;
}

export interface EndpointContext extends CrioNode, PullFiles {
  readonly helpers: CredentialHelpers;
}

/** @throws RegistryError if CRI-O finds no registry for the name */
export async function endpointsOf(
  target: PullTarget,
  context: EndpointContext,
): Promise<readonly Endpoint[]> {
  const { domain, repository, tag, digest, shortName } = target;
  const { registries, shortNameMode } = context;
  const suffix = digest === undefined ? `:${tag ?? 'latest'}` : `@${digest}`;
  try {
    // The author of the pod names the registry of other references.
    const { references, file } =
      shortName === undefined
        ? { references: [repository + suffix], file: undefined }
        : resolveShortName(shortName, suffix, registries, shortNameMode);
    const found = references.map((text) => endpointsOfCandidate(text, file, domain, context));
    return (await Promise.all(found)).flat();
  } catch (error) {
    if (!(error instanceof InvalidConfig)) throw error;
    throw forbidden(domain, error.message);
  }
}

/**
 * @param text a complete reference that CRI-O would pull
 * @param file names its registry, if the author of the pod did not
 * @param wanted domain for which the kubelet has chosen its credential; other candidates never receive it
 */
async function endpointsOfCandidate(
  text: string,
  file: string | undefined,
  wanted: string,
  context: EndpointContext,
): Promise<readonly Endpoint[]> {
  const resolved = parseCanonical(text);
  const { domain, path } = resolved;
  try {
    const rejection = rejectionOf(text, context.policy);
    const sources = pullSources(text, context.registries, file).map(async (source) => ({
      ...(await endpointOf(source, rejection, domain === wanted && source.domain === wanted, context)),
      resolved,
    }));
    return await Promise.all(sources);
  } catch (error) {
    if (!(error instanceof InvalidConfig)) throw error;
    const reason = `the node's CRI-O cannot pull ${text}: ${error.message}`;
    const refusal = forbidden(domain, reason);
    const source = { domain, path, insecure: false, file };
    return [{ ...(await endpointOf(source, refusal, false, context)), resolved }];
  }
}

async function endpointOf(
  { domain, path, insecure, file, blockedBy }: PullSource,
  rejection: RegistryError | undefined,
  acceptsCredentials: boolean,
  { conf, registries, authFiles, certificates, helpers }: EndpointContext,
): Promise<Endpoint> {
  const blocked =
    blockedBy &&
    forbidden(domain, `the registry ${blockedBy.prefix} is blocked in ${blockedBy.file} of this node`);
  const failure = ({ message }: ConfigFileError) =>
    new RegistryError('unavailable', domain, `the node's CRI-O cannot use ${domain}: ${message}`);
  const tls = certificates.get(domain) ?? { ca: [], client: [] };
  const credential = await orBroken(domain, () =>
    helpers.credentialFor(`${domain}/${path}`, registries.credentialHelpers, authFiles, conf.environment),
  );
  const isBroken = tls instanceof ConfigFileError;
  const refusal = blocked ?? rejection ?? (isBroken ? failure(tls) : undefined);
  const { ca, client } = isBroken ? { ca: [], client: [] } : tls;
  const host = domain === 'docker.io' ? 'registry-1.docker.io' : domain;
  return {
    base: `https://${host}/v2`,
    host,
    namespace: domain,
    namespaceParameter: false,
    repository: path,
    httpFallback: insecure,
    resolve: true,
    pull: true,
    tls: { ca, client, skipVerify: insecure },
    headers: [],
    acceptsCredentials,
    prefersOwn: true,
    ...(refusal && { refusal }),
    ...(credential instanceof ConfigFileError
      ? { ownFailure: failure(credential) }
      : credential && { ownCredential: credential }),
    origin: file ?? 'default',
  };
}

function forbidden(domain: string, reason: string): RegistryError {
  return new RegistryError('forbidden', domain, reason);
}
