/**
 * The endpoints of an image as the node's CRI-O would use them: the candidates of a short name
 * (`short-names.ts`), for each its mirrors and its location (`pull-sources.ts`), with their certificates
 * (`certs-d.ts`) and credentials (`auth-files.ts`). What stops CRI-O at one endpoint is the endpoint's
 * refusal, because CRI-O goes on to the next one.
 */
import { FileError } from '../../src/files/read.ts';
import type { Endpoint, PullTarget } from '../../src/registry/endpoints/endpoint.ts';
import { RegistryError, type RegistryErrorCode } from '../../src/registry/manifest-lookup.ts';
import { ConfigFileError, InvalidConfig } from '../toml.ts';
import type { AuthFiles } from './auth-files.ts';
import { certificatesFor } from './certs-d.ts';
import type { CrioConf, ShortNameMode } from './crio-conf.ts';
import { policyFor } from './policy.ts';
import { parseCanonical, pullSources, type PullSource } from './pull-sources.ts';
import type { RegistriesConf } from './registries-conf.ts';
import { resolveShortName } from './short-names.ts';

export interface CrioNode {
  readonly conf: CrioConf;
  readonly registries: RegistriesConf;
  readonly shortNameMode: ShortNameMode;
}

export interface EndpointContext extends CrioNode {
  readonly hostRoot: string;
  readonly authFiles: AuthFiles;
}

/** A complete reference that CRI-O would pull. */
interface Candidate {
  /** `domain/path` with a tag or digest. */
  readonly text: string;
  /** The file that names its registry, if the author of the pod did not. */
  readonly file: string | undefined;
}

/** @throws RegistryError if CRI-O finds no registry for the name */
export async function endpointsOf(
  target: PullTarget,
  context: EndpointContext,
): Promise<readonly Endpoint[]> {
  try {
    const found = candidatesOf(target, context).map((each) => endpointsOfCandidate(each, target, context));
    return (await Promise.all(found)).flat();
  } catch (error) {
    if (!(error instanceof InvalidConfig)) throw error;
    throw new RegistryError('forbidden', target.domain, error.message, { cause: error });
  }
}

function candidatesOf(
  { repository, tag, digest, shortName }: PullTarget,
  { registries, shortNameMode }: CrioNode,
): readonly Candidate[] {
  const suffix = digest === undefined ? `:${tag ?? 'latest'}` : `@${digest}`;
  if (shortName === undefined) {
    const text = repository + suffix;
    parseCanonical(text);
    return [{ text, file: undefined }];
  }
  const found = resolveShortName(shortName, suffix, registries, shortNameMode);
  return found.map((text) => ({ text, file: registries.search?.file }));
}

async function endpointsOfCandidate(
  { text, file }: Candidate,
  target: PullTarget,
  context: EndpointContext,
): Promise<readonly Endpoint[]> {
  const { registries } = context;
  const { domain, path } = parseCanonical(text);
  try {
    const rejection = await policyRejection(text, `${domain}/${path}`, context);
    const sources = pullSources(text, registries, file);
    // The kubelet has chosen its credential for one registry; other candidates never receive it.
    const credentialHost = domain === target.domain ? domain : undefined;
    return await Promise.all(
      sources.map((source) => endpointOf(source, rejection, source.domain === credentialHost, context)),
    );
  } catch (error) {
    if (!(error instanceof InvalidConfig)) throw error;
    const reason = `the node's CRI-O cannot pull ${text}: ${error.message}`;
    const source = { domain, path, insecure: false, file };
    return [await endpointOf(source, refusalOf('forbidden', domain, reason), false, context)];
  }
}

/** Why the signature policy of the node refuses an image. */
async function policyRejection(
  text: string,
  repository: string,
  { conf, hostRoot }: EndpointContext,
): Promise<RegistryError | undefined> {
  try {
    const { verdict, where, rule } = await policyFor({ repository, text }, conf, hostRoot);
    if (verdict !== 'rejected') return undefined;
    return refusalOf('forbidden', repository, `${where}: ${rule} rejects ${text} on this node`);
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error;
    // Without the file CRI-O could not have pulled the agent, so the file is not mounted.
    if (error.cause instanceof FileError && error.cause.code === 'missing') return undefined;
    return refusalOf('unavailable', repository, `the node's CRI-O cannot pull: ${error.message}`);
  }
}

async function endpointOf(
  { domain, path, insecure, file, blockedBy }: PullSource,
  rejection: RegistryError | undefined,
  acceptsCredentials: boolean,
  { conf, registries, hostRoot, authFiles }: EndpointContext,
): Promise<Endpoint> {
  const blocked =
    blockedBy && `the registry ${blockedBy.prefix} is blocked in ${blockedBy.file} of this node`;
  const unlessFailing = <T>(found: Promise<T>): Promise<T | RegistryError> =>
    found.catch((error: unknown) => {
      if (!(error instanceof ConfigFileError)) throw error;
      return refusalOf('unavailable', domain, `the node's CRI-O cannot use ${domain}: ${error.message}`);
    });
  const repository = `${domain}/${path}`;
  const helpers = registries.credentialHelpers;
  const [certificates, credential] = await Promise.all([
    unlessFailing(certificatesFor(domain, conf, hostRoot)),
    unlessFailing(authFiles.credentialFor({ repository, helpers }, conf)),
  ]);
  const hasCertificates = !(certificates instanceof RegistryError);
  const refusal =
    blocked === undefined
      ? (rejection ?? (hasCertificates ? undefined : certificates))
      : refusalOf('forbidden', domain, blocked);
  const tls = hasCertificates ? certificates : { ca: [], client: [] };
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
    tls: { ...tls, skipVerify: insecure },
    headers: [],
    acceptsCredentials,
    prefersOwn: true,
    ...(refusal && { refusal }),
    ...(credential instanceof RegistryError
      ? { ownFailure: credential }
      : credential && { ownCredential: credential }),
    origin: file ?? 'default',
  };
}

function refusalOf(code: RegistryErrorCode, where: string, message: string): RegistryError {
  return new RegistryError(code, where, message);
}
