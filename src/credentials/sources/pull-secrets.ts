/**
 * The pull secrets of a pod (kubernetes pkg/credentialprovider/secrets/secrets.go). A Secret whose type and
 * data key do not agree is ignored; all others form one keyring in the pod's order. A malformed Secret makes
 * the whole pull fail on the node, for every image, so every lookup fails here too.
 *
 * Unlike in the kubelet, the size is limited: whoever may create pods chooses their Secrets, and all pods
 * would wait until these are read. A Secret without room is ignored.
 */
import type { PodSpec, Secret, ServiceAccount } from '../../kube/api/objects.ts';
import {
  decodeBase64,
  DockerConfigError,
  parseDockerConfig,
  TooManyEntries,
  type DockerConfigFormat,
} from '../docker/docker-config.ts';
import {
  CredentialError,
  type CredentialSource,
  type SourceProblem,
  type HeldCredential,
} from '../credential.ts';
import { createKeyring, holdEntries } from '../keyring/keyring.ts';

const kinds: readonly { type: string; dataKey: string; format: DockerConfigFormat }[] = [
  { type: 'kubernetes.io/dockerconfigjson', dataKey: '.dockerconfigjson', format: 'config.json' },
  { type: 'kubernetes.io/dockercfg', dataKey: '.dockercfg', format: 'dockercfg' },
];

/**
 * For all Secrets of a pod; as base64. Real ones have a few entries of one to four KiB, and take less than a
 * millisecond. These limits take 25 ms, and a Secret of 1 MiB with 97,000 empty entries took 3.5 s.
 */
const room = { maxBytes: 256 * 1024, maxEntries: 1000 };

/** Credentials tried for one image, the best first: as many as a pod has Secrets. Each may cost several requests. */
const maxMatching = 20;

/** @param secrets of the pod, in its order @param missing problems of those that do not exist */
export function createPullSecretSource(
  secrets: readonly PullSecret[],
  missing: readonly SourceProblem[] = [],
): CredentialSource {
  const held: HeldCredential[] = [];
  const problems: SourceProblem[] = [...missing];
  let malformed: CredentialError | undefined;
  let bytes = 0;
  for (const secret of secrets) {
    const { namespace = '', name = '' } = secret.metadata ?? {};
    const origin = namespace === '' ? name : `${namespace}/${name}`;
    const problem = (message: string) => problems.push({ source: 'pull-secret', origin, message });
    const { data, format } = documentOf(secret);
    if (secret.isTooLarge || (data && bytes + data.length > room.maxBytes)) {
      problem(tooLarge);
      continue;
    }
    if (!data || !format) {
      problem(ignored);
      continue;
    }
    bytes += data.length;
    try {
      const content = decodeBase64(data, 'padded');
      const maxEntries = room.maxEntries - held.length;
      const read = holdEntries(parseDockerConfig(content, format, { maxEntries, owner: 'others' }), origin);
      held.push(...read.held);
      if (read.skipped > 0) problem(`entries skipped because their keys are not registries: ${read.skipped}`);
    } catch (error) {
      if (error instanceof TooManyEntries) {
        problem(`${withoutRoom} ${room.maxEntries} entries`);
        continue;
      }
      if (!(error instanceof DockerConfigError)) throw error;
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
      malformed === undefined
        ? Promise.resolve(keyring.lookup(repository).slice(0, maxMatching))
        : Promise.reject(malformed),
    problems: () => problems,
  };
}

interface PullSecret extends Secret {
  /** Its document was left out, because no pod has room for it. */
  readonly isTooLarge?: true;
}

/** The part of a Secret that a source reads: no content of other types, and large Secrets become small. */
export function pullSecretPart(secret: Secret): PullSecret {
  const { namespace, name } = secret.metadata ?? {};
  const { dataKey, data } = documentOf(secret);
  return {
    metadata: { ...(namespace !== undefined && { namespace }), ...(name !== undefined && { name }) },
    ...(secret.type !== undefined && { type: secret.type }),
    ...(dataKey &&
      data !== undefined &&
      (data.length > room.maxBytes ? { isTooLarge: true } : { data: { [dataKey]: data } })),
  };
}

/**
 * The names of the pull secrets of a pod. One that names none has those of its service account; they are never merged
 * (kubernetes plugin/pkg/admission/serviceaccount). Empty names are ignored.
 */
export function pullSecretNames({
  imagePullSecrets,
}: Pick<PodSpec | ServiceAccount, 'imagePullSecrets'>): readonly string[] {
  return (imagePullSecrets ?? []).flatMap(({ name }) => name || []);
}

const ignored =
  'it is ignored: the type must be kubernetes.io/dockerconfigjson, with the key .dockerconfigjson (kubectl create secret docker-registry)';

const withoutRoom = 'it is ignored: archwright reads of all pull secrets of a pod only';
const tooLarge = `${withoutRoom} ${room.maxBytes / 1024} KiB, as Kubernetes stores them`;

/** Where its document is, and the base64 text. */
function documentOf({ type, data }: Secret) {
  const kind = kinds.find((each) => each.type === type);
  return { ...kind, data: kind && data?.[kind.dataKey] };
}
