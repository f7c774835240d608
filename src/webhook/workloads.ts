/** Objects that hold a pod template: where it is, and which pull secrets its pods will have. */
import { pullSecretNames } from '../credentials/sources/pull-secrets.ts';
import type { AdmissionRequest, PodTemplate } from '../kube/api/objects.ts';
import type { AdmissionKind } from './metrics.ts';
import type { PullSecretNames } from '../cluster/pull-secrets.ts';
import { isObject, templateOf } from './validate-pod.ts';

/** Group and kind → path of the template. */
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

export interface Template {
  readonly template: PodTemplate;
  /** JSON pointer to it, such as `/spec/template`. */
  readonly basePath: string;
}

/**
 * The pod template of a workload.
 * @throws InvalidObject
 */
export function templateIn(request: AdmissionRequest): Template {
  const path = templatePaths[`${request.kind.group}/${request.kind.kind}`] ?? [];
  return { template: templateOf(at(request.object, path), path.join('.')), basePath: `/${path.join('/')}` };
}

/** The template before an update; `undefined` for anything else. */
export function templateBefore(request: AdmissionRequest): PodTemplate | undefined {
  if (request.operation !== 'UPDATE') return undefined;
  const path = templatePaths[`${request.kind.group}/${request.kind.kind}`] ?? [];
  const before = at(request.oldObject, path);
  return before === undefined || before === null ? undefined : templateOf(before, path.join('.'));
}

/**
 * True where an update leaves the template as it was. What was decided for it then stands: changing it now would
 * restart every pod because a label was added to the workload.
 */
export function templateUnchanged(request: AdmissionRequest): boolean {
  if (request.operation !== 'UPDATE') return false;
  const path = templatePaths[`${request.kind.group}/${request.kind.kind}`] ?? [];
  const [before, after] = [at(request.oldObject, path), at(request.object, path)];
  // Both are written by the same API server, so equal templates have the same order of fields.
  return before !== undefined && JSON.stringify(before) === JSON.stringify(after);
}

/** True for an object that only waits for its finalizers. */
export function isBeingDeleted(object: unknown): boolean {
  const when = at(object, ['metadata', 'deletionTimestamp']);
  return when !== undefined && when !== null;
}

/** True where a controller made the object, such as a Deployment its ReplicaSet: no person is there to read a warning. */
export function hasController(object: unknown): boolean {
  const owners = at(object, ['metadata', 'ownerReferences']);
  return (
    Array.isArray(owners) && owners.some((owner: unknown) => isObject(owner) && owner['controller'] === true)
  );
}

/**
 * The pull secrets that pods of a template will have. The admission plugin ServiceAccount gives them those of their
 * service account where they name none (kubernetes plugin/pkg/admission/serviceaccount/admission.go).
 */
export function templatePullSecrets({ spec }: PodTemplate): PullSecretNames {
  const names = pullSecretNames(spec);
  return names.length > 0 ? { names } : { names, serviceAccount: spec.serviceAccountName || 'default' };
}

function at(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const name of path) found = isObject(found) ? found[name] : undefined;
  return found;
}
