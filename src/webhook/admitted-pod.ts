/**
 * The pod or pod template of an admission request, in the shape that placement needs (the API server checks
 * objects only after mutation), and the pull secrets that its pods will have.
 */
import type { PlacementTarget } from '../cluster/placement-of-pod.ts';
import type { PullSecretNames } from '../cluster/pull-secrets.ts';
import { pullSecretNames } from '../credentials/sources/pull-secrets.ts';
import type { AdmissionRequest, KubeObject, Pod, PodTemplate } from '../kube/api/objects.ts';
import { uncheckedRecord } from '../placement/record/read.ts';
import type { AdmissionKind } from './metrics.ts';
import { isRecord } from '../names/values.ts';

const templatePaths: Readonly<Record<string, readonly string[]>> = {
  'apps/DaemonSet': ['spec', 'template'],
  'apps/Deployment': ['spec', 'template'],
  'apps/StatefulSet': ['spec', 'template'],
  'apps/ReplicaSet': ['spec', 'template'],
  'batch/Job': ['spec', 'template'],
  'batch/CronJob': ['spec', 'jobTemplate', 'spec', 'template'],
};

/** What kind of object a request is about, as far as this program cares. */
export function kindOf(request: AdmissionRequest): AdmissionKind {
  const { group, kind } = request.kind;
  if (kind === 'Pod') return group === '' || group === undefined ? 'Pod' : 'other';
  return Object.hasOwn(templatePaths, `${group}/${kind}`) ? (kind as AdmissionKind) : 'other';
}

function templatePath({ kind: { group, kind } }: AdmissionRequest): readonly string[] {
  return templatePaths[`${group}/${kind}`] ?? [];
}

/** The pod of an admission request: the object itself, or the template of the pods that it will make. */
export interface AdmittedPod extends Pick<PlacementTarget, 'pod' | 'template' | 'before' | 'pullSecrets'> {
  readonly kind: AdmissionKind;
  /** JSON pointer to the pod in the object, such as `/spec/template`; empty for a pod. */
  readonly basePath: string;
}

/** @throws InvalidObject */
export function admittedPodOf(request: AdmissionRequest, kind: AdmissionKind): AdmittedPod {
  const { operation, object, oldObject } = request;
  if (kind === 'Pod') {
    const pod = podOf(object);
    return { kind, pod, pullSecrets: { names: pullSecretNames(pod.spec) }, basePath: '' };
  }
  const path = templatePath(request);
  const pod = templateOf(at(object, path), path.join('.'));
  const old = operation === 'UPDATE' ? (at(oldObject, path) ?? undefined) : undefined;
  return {
    kind,
    pod,
    template: kind === 'DaemonSet' ? 'DaemonSet' : 'workload',
    ...(old !== undefined && { before: templateOf(old, path.join('.')) }),
    pullSecrets: templatePullSecrets(pod),
    basePath: `/${path.join('/')}`,
  };
}

/**
 * Whether an update leaves the template as it was. Its decision stays then: a change would restart every pod
 * only because the workload got a label.
 */
export function templateUnchanged(request: AdmissionRequest): boolean {
  if (request.operation !== 'UPDATE') return false;
  const path = templatePath(request);
  const [before, after] = [at(request.oldObject, path), at(request.object, path)];
  // Both are written by the same API server, so equal templates have the same order of fields.
  return before !== undefined && JSON.stringify(before) === JSON.stringify(after);
}

/** Whether an image was unknown at the last decision of a DaemonSet. Each update decides it again. */
export function isProvisionalTemplate(request: AdmissionRequest, kind: AdmissionKind): boolean {
  const metadata = metadataOf(at(request.object, templatePath(request))) ?? {};
  return kind === 'DaemonSet' && uncheckedRecord({ metadata }).isProvisional;
}

export function isBeingDeleted(object: unknown): boolean {
  return (at(object, ['metadata', 'deletionTimestamp']) ?? undefined) !== undefined;
}

/** A controller made the object, such as a Deployment its ReplicaSet: no person reads a warning. */
export function hasController(object: unknown): boolean {
  const owners = at(object, ['metadata', 'ownerReferences']);
  return (
    Array.isArray(owners) && owners.some((owner: unknown) => isRecord(owner) && owner['controller'] === true)
  );
}

/**
 * The pull secrets that pods of a template will have. If it names none, the admission plugin ServiceAccount
 * gives them those of their service account (kubernetes plugin/pkg/admission/serviceaccount/admission.go).
 */
export function templatePullSecrets({ spec }: PodTemplate): PullSecretNames {
  return { names: pullSecretNames(spec), serviceAccount: spec.serviceAccountName || 'default' };
}

/** The metadata of an object, unchecked. */
export function metadataOf(object: unknown): KubeObject['metadata'] {
  return at(object, ['metadata']) ?? undefined;
}

function at(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const name of path) found = isRecord(found) ? found[name] : undefined;
  return found;
}

export class InvalidObject extends Error {
  override readonly name = 'InvalidObject';
}

/** Finds what is wrong: the path from the value on, and what was expected there. */
type Check = (value: unknown) => readonly [path: string, expected: string] | undefined;

const text: Check = (value) => (typeof value === 'string' ? undefined : ['', 'a string']);

/** Labels, annotations, node selectors. */
const texts: Check = (value) => {
  if (!isRecord(value)) return ['', 'an object'];
  return Object.values(value).every((each) => typeof each === 'string')
    ? undefined
    : ['', 'an object of strings'];
};

function list(items: 'objects' | 'strings', check: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return ['', 'a list'];
    for (const item of value) {
      const [path, expected] = check(item) ?? [];
      if (path !== undefined && expected !== undefined)
        return path === '' ? ['', `a list of ${items}`] : [`[]${path}`, expected];
    }
    return undefined;
  };
}

/** @param required the field that must be there; others may be absent or null */
function object(fields: Readonly<Record<string, Check>>, required?: string): Check {
  const checks = Object.entries(fields);
  return (value) => {
    if (!isRecord(value)) return ['', 'an object'];
    for (const [name, check] of checks) {
      const field = value[name] ?? undefined;
      const wrong = field === undefined && name !== required ? undefined : check(field);
      if (wrong) return [`.${name}${wrong[0]}`, wrong[1]];
    }
    return undefined;
  };
}

const containers = list('objects', object({ name: text, image: text, imagePullPolicy: text }));
const requirements = list('objects', object({ key: text, operator: text, values: list('strings', text) }));
const term = object({ matchExpressions: requirements, matchFields: requirements });

/** What placement reads in a pod or a pod template. */
const template = object(
  {
    metadata: object({ labels: texts, annotations: texts }),
    spec: object(
      {
        containers,
        initContainers: containers,
        volumes: list(
          'objects',
          object({ name: text, image: object({ reference: text, pullPolicy: text }) }),
        ),
        imagePullSecrets: list('objects', object({ name: text })),
        nodeName: text,
        serviceAccountName: text,
        runtimeClassName: text,
        nodeSelector: texts,
        tolerations: list('objects', object({ key: text, operator: text, value: text, effect: text })),
        schedulingGates: list('objects', object({ name: text })),
        os: object({ name: text }),
        affinity: object({
          nodeAffinity: object({
            requiredDuringSchedulingIgnoredDuringExecution: object({
              nodeSelectorTerms: list('objects', term),
            }),
            preferredDuringSchedulingIgnoredDuringExecution: list('objects', object({ preference: term })),
          }),
        }),
      },
      'containers',
    ),
  },
  'spec',
);

/** @throws InvalidObject */
export function podOf(value: unknown): Pod {
  return templateOf(value, 'object');
}

/** @param where path of the value, for the error @throws InvalidObject */
export function templateOf(value: unknown, where: string): PodTemplate {
  const wrong = template(value);
  if (wrong) throw new InvalidObject(`${where}${wrong[0]} is not ${wrong[1]}`);
  return value as PodTemplate;
}
