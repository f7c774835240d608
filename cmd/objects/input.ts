/** Objects in files: pods and workloads to explain, and objects that count as if they were in the cluster. */
import { pullSecretNames } from '../../src/credentials/sources/pull-secrets.ts';
import type { AdmissionRequest, KubeObject, Pod, Secret } from '../../src/kube/api/objects.ts';
import {
  clusterConfigKind,
  podConfigKind,
  resourceApiVersion,
} from '../../src/policy/resources/placement.ts';
import type { AdmissionKind } from '../../src/webhook/metrics.ts';
import { isRecord } from '../../src/names/values.ts';
import type { JsonObject } from '../../src/http/json.ts';
import { kindOf } from '../../src/webhook/admitted-pod.ts';
import { storedSecret, texts, type FoundObject } from './documents.ts';

export interface Subject {
  readonly kind: Exclude<AdmissionKind, 'other'>;
  readonly namespace: string;
  readonly name: string;
  /** `file:line` */
  readonly place: string;
  readonly request: AdmissionRequest;
  readonly node?: string | undefined;
  readonly pods?: readonly Pod[] | undefined;
}

export type Input = ReturnType<typeof sortObjects>;

/** Sorts objects by what they are for. @param namespace default namespace */
export function sortObjects(found: readonly FoundObject[], namespace: string) {
  const subjects: Subject[] = [];
  /** Keys: `namespace/name`. */
  const secrets = new Map<string, Secret>();
  /** Names of pull secrets by `namespace/name` of the service account. */
  const serviceAccounts = new Map<string, readonly string[]>();
  const namespaces = new Map<string, Readonly<Record<string, string>>>();
  const clusterConfigs: KubeObject[] = [];
  const podConfigs: KubeObject[] = [];
  const skipped: Pick<Subject, 'name' | 'place' | 'request'>[] = [];
  /** Places of documents that are not Kubernetes objects. */
  const unclear: string[] = [];

  for (const { value, file, line, node, pods } of found) {
    const place = line === 0 ? file : `${file}:${line}`;
    if (!isRecord(value) || typeof value['kind'] !== 'string' || value['kind'] === '') {
      unclear.push(place);
      continue;
    }
    const kind = value['kind'];
    const metadata = isRecord(value['metadata']) ? value['metadata'] : {};
    const { name: given, generateName = '', namespace: own } = texts(metadata);
    const name = given || generateName;
    const home = own || namespace;
    const key = `${home}/${name}`;
    const request = creationOf(value, kind, home);
    const admission = kindOf(request);
    if (admission !== 'other')
      subjects.push({ kind: admission, namespace: home, name, place, request, node, pods });
    else if (kind === 'Secret')
      secrets.set(key, { ...storedSecret(value), metadata: { name, namespace: home } });
    else if (kind === 'ServiceAccount') serviceAccounts.set(key, pullSecretsOf(value));
    else if (kind === 'Namespace') namespaces.set(name, texts(metadata['labels']));
    else if (isOurs(value, clusterConfigKind)) clusterConfigs.push({ ...value, metadata: { name } });
    else if (isOurs(value, podConfigKind)) podConfigs.push({ ...value, metadata: { name, namespace: home } });
    else skipped.push({ name, place, request });
  }
  return { subjects, secrets, serviceAccounts, namespaces, clusterConfigs, podConfigs, skipped, unclear };
}

function isOurs({ apiVersion, kind }: JsonObject, wanted: string): boolean {
  return apiVersion === resourceApiVersion && kind === wanted;
}

export function creationOf(object: JsonObject, kind: string, namespace: string): AdmissionRequest {
  const apiVersion = typeof object['apiVersion'] === 'string' ? object['apiVersion'] : '';
  const slash = apiVersion.indexOf('/');
  const [group, version] = [apiVersion.slice(0, Math.max(slash, 0)), apiVersion.slice(slash + 1)];
  return {
    uid: '',
    kind: { group, version, kind },
    resource: { group, version, resource: '' },
    namespace,
    operation: 'CREATE',
    object,
  };
}

function pullSecretsOf({ imagePullSecrets }: JsonObject): readonly string[] {
  const references: readonly unknown[] = Array.isArray(imagePullSecrets) ? imagePullSecrets : [];
  return pullSecretNames({ imagePullSecrets: references.filter(isRecord) });
}
