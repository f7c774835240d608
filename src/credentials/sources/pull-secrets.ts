/**
 * The pull secrets of a pod (kubernetes pkg/credentialprovider/secrets/secrets.go). A Secret whose type and
 * data key do not agree is ignored; all others form one keyring in the pod's order. A malformed Secret makes
 * the whole pull fail on the node, for every image, so every lookup fails here too.
 */
import type { PodSpec, Secret, ServiceAccount } from '../../kube/api/objects.ts';
import { Base64Error, decodeBase64 } from '../docker/go-encoding.ts';
import {
  CredentialError,
  type CredentialSource,
  type SourceProblem,
  type HeldCredential,
} from '../credential.ts';
import { DockerConfigError, parseDockerConfig, type DockerConfigFormat } from '../docker/docker-config.ts';
import { contentId } from '../identity.ts';
import { createKeyring, holdEntries } from '../keyring/keyring.ts';

const kinds: readonly { type: string; dataKey: string; format: DockerConfigFormat }[] = [
  { type: 'kubernetes.io/dockerconfigjson', dataKey: '.dockerconfigjson', format: 'config.json' },
  { type: 'kubernetes.io/dockercfg', dataKey: '.dockercfg', format: 'dockercfg' },
];

/** @param secrets of the pod, in its order @param missing problems of those that do not exist */
export function createPullSecretSource(
  secrets: readonly Secret[],
  missing: readonly SourceProblem[] = [],
): CredentialSource {
  const held: HeldCredential[] = [];
  const problems: SourceProblem[] = [...missing];
  let malformed: CredentialError | undefined;
  for (const secret of secrets) {
    const { namespace = '', name = '' } = secret.metadata ?? {};
    const origin = namespace === '' ? name : `${namespace}/${name}`;
    const problem = (message: string) => problems.push({ source: 'pull-secret', origin, message });
    try {
      const read = readSecret(secret, origin);
      held.push(...read.held);
      if (read.isIgnored) problem(ignored);
      if (read.skipped > 0) problem(`entries skipped because their keys are not registries: ${read.skipped}`);
    } catch (error) {
      if (!(error instanceof DockerConfigError || error instanceof Base64Error)) throw error;
      malformed ??= new CredentialError(
        origin,
        `pull secret ${origin}: ${error.message}; the node will refuse to pull until it is repaired`,
      );
      problem(error.message);
    }
  }
  const keyring = createKeyring('pull-secret', held);
  return {
    name: 'pull-secret',
    lookup: (repository) =>
      malformed === undefined ? Promise.resolve(keyring.lookup(repository)) : Promise.reject(malformed),
    problems: () => problems,
    fingerprint: () => contentId(held),
  };
}

/** The part of a Secret that a source reads: no content of other types, and large Secrets become small. */
export function pullSecretPart({ metadata, type, data }: Secret): Secret {
  const { namespace, name } = metadata ?? {};
  const dataKey = kinds.find((kind) => kind.type === type)?.dataKey;
  const value = dataKey === undefined ? undefined : data?.[dataKey];
  return {
    metadata: { ...(namespace !== undefined && { namespace }), ...(name !== undefined && { name }) },
    ...(type !== undefined && { type }),
    ...(dataKey !== undefined && value !== undefined && { data: { [dataKey]: value } }),
  };
}

/**
 * The names of a pod's pull secrets: its own, or its service account's if it has none. They are never merged
 * (kubernetes plugin/pkg/admission/serviceaccount). Empty names are ignored.
 */
export function pullSecretNames(
  spec: Pick<PodSpec, 'imagePullSecrets'>,
  serviceAccount?: ServiceAccount,
): readonly string[] {
  const own = spec.imagePullSecrets ?? [];
  const list = own.length > 0 ? own : (serviceAccount?.imagePullSecrets ?? []);
  return list.flatMap(({ name }) => (name === undefined || name === '' ? [] : [name]));
}

const ignored =
  'it is ignored: the type must be kubernetes.io/dockerconfigjson, with the key .dockerconfigjson (kubectl create secret docker-registry)';

function readSecret(
  secret: Secret,
  origin: string,
): ReturnType<typeof holdEntries> & { readonly isIgnored?: true } {
  for (const { type, dataKey, format } of kinds) {
    const data = secret.type === type ? secret.data?.[dataKey] : undefined;
    if (data === undefined || data === '') continue;
    const content = decodeBase64(data, 'padded');
    return holdEntries(parseDockerConfig(content, format), origin);
  }
  return { held: [], skipped: 0, isIgnored: true };
}
