/** Create, patch, delete and evict: their effect on the store, and their responses. */
import { isDeepStrictEqual } from 'node:util';
import { timestamp, type Objects, type StoredObject } from './objects.ts';
import { applyConfiguration, applyJsonPatch, applyMergePatch } from './patch.ts';
import type { Target } from './paths.ts';
import type { StoreRequest } from './faults.ts';

export interface Answer {
  readonly status: number;
  readonly body: object | string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function statusAnswer(code: number, reason: string, message: string, details: object = {}): Answer {
  const status = code < 400 ? 'Success' : 'Failure';
  return { status: code, body: { kind: 'Status', apiVersion: 'v1', status, reason, message, details, code } };
}

export function notFound({ resource, name }: Target): Answer {
  return statusAnswer(404, 'NotFound', `${resource} "${name}" not found`);
}

const conflictText =
  'the object has been modified; please apply your changes to the latest version and try again';

function conflict({ resource, name }: Target, why = conflictText): Answer {
  return statusAnswer(409, 'Conflict', `Operation cannot be fulfilled on ${resource} "${name}": ${why}`);
}

function invalid(field: string, message: string): Answer {
  const causes = [{ reason: 'FieldValueInvalid', field, message }];
  return statusAnswer(422, 'Invalid', `${field}: Invalid value: ${message}`, { causes });
}

interface WritesOptions {
  readonly objects: Objects;
  readonly now: () => number;
  /** Whether deleted pods on a node stay, terminating, until the test removes them. */
  readonly gracefulPods: boolean;
}

export class Writes {
  readonly #options: WritesOptions;
  /** The last configuration that each manager applied, by object. */
  readonly #applied = new Map<string, unknown>();
  #generated = 0;

  constructor(options: WritesOptions) {
    this.#options = options;
  }

  create(target: Target, request: StoreRequest): Answer {
    const body = request.json as Partial<StoredObject> | undefined;
    if (typeof body !== 'object') return statusAnswer(400, 'BadRequest', 'the body is not an object');
    const { name, generateName, namespace } = body.metadata ?? {};
    if (namespace !== undefined && namespace !== target.namespace) {
      return statusAnswer(400, 'BadRequest', 'the namespace of the object does not match the request');
    }
    if (name === undefined && generateName === undefined) {
      return statusAnswer(422, 'Invalid', 'metadata.name: Required value: name or generateName is required');
    }
    const made = {
      ...target,
      name: name ?? `${generateName ?? ''}${(++this.#generated).toString(36).padStart(5, 'g')}`,
    };
    if (this.#options.objects.get(made)) {
      return statusAnswer(409, 'AlreadyExists', `${target.resource} "${made.name}" already exists`);
    }
    if (body.metadata?.resourceVersion !== undefined) {
      return statusAnswer(500, '', 'resourceVersion should not be set on objects to be created');
    }
    if (request.query.get('dryRun') === 'All') return { status: 201, body };
    const status = target.resource === 'pods' ? { phase: 'Pending' } : undefined;
    const fresh = defined({ ...body, status });
    return { status: 201, body: this.#options.objects.put(made, fresh) };
  }

  patch(target: Target, request: StoreRequest): Answer {
    const isApply = request.contentType === 'application/apply-patch+yaml';
    if (isApply && !request.query.get('fieldManager')) {
      return statusAnswer(422, 'Invalid', 'fieldManager: Required value: is required for apply patch');
    }
    if (!isApply && !knownPatches.has(request.contentType ?? '')) {
      return statusAnswer(415, 'UnsupportedMediaType', 'the body of the request was in an unknown format');
    }
    const current = this.#options.objects.get(target);
    if (current === undefined) {
      if (!isApply || target.subresource !== '') return notFound(target);
      const made = withManager(request.json as StoredObject, request.query.get('fieldManager') ?? '');
      if (made.metadata.uid !== undefined) return conflict(target, 'uid mismatch: there is no such object');
      const stored = this.#options.objects.put(target, made);
      this.#applied.set(`${stored.metadata.uid} ${request.query.get('fieldManager') ?? ''}`, request.json);
      return { status: 201, body: stored };
    }
    const next = this.#changed(request, current) as StoredObject | undefined;
    if (next === undefined) {
      const message = 'the server rejected our request due to an error in our request';
      return statusAnswer(422, 'Invalid', message);
    }
    const { uid, resourceVersion } = next.metadata;
    if (uid !== current.metadata.uid)
      return isApply ? conflict(target, 'uid mismatch') : invalid('metadata.uid', 'field is immutable');
    if (resourceVersion !== current.metadata.resourceVersion) return conflict(target);
    return this.#store(target, request, current, next);
  }

  remove(target: Target, options: unknown): Answer {
    const current = this.#options.objects.get(target);
    if (current === undefined) return notFound(target);
    const { preconditions } = (options ?? {}) as {
      preconditions?: { uid?: string; resourceVersion?: string };
    };
    const { uid, resourceVersion, finalizers = [], deletionTimestamp } = current.metadata;
    if (preconditions?.uid !== undefined && preconditions.uid !== uid) {
      return conflict(target, `Precondition failed: UID in precondition: ${preconditions.uid}`);
    }
    if (preconditions?.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersion) {
      return conflict(target, 'Precondition failed: ResourceVersion in precondition');
    }
    const hasNode = (current.spec as { nodeName?: string } | undefined)?.nodeName !== undefined;
    const stays =
      finalizers.length > 0 || (this.#options.gracefulPods && target.resource === 'pods' && hasNode);
    if (!stays) {
      this.#options.objects.remove(target);
      return { status: 200, body: current };
    }
    if (deletionTimestamp !== undefined) return { status: 200, body: current };
    const at = timestamp(this.#options.now());
    const marked = { ...current, metadata: { ...current.metadata, deletionTimestamp: at } };
    return { status: 200, body: this.#options.objects.put(target, marked) };
  }

  #changed(request: StoreRequest, current: StoredObject): object | undefined {
    switch (request.contentType) {
      case 'application/json-patch+json':
        return applyJsonPatch(current, request.json);
      case 'application/merge-patch+json':
        return applyMergePatch(current, request.json) as object;
      case 'application/apply-patch+yaml': {
        const manager = request.query.get('fieldManager') ?? '';
        const key = `${current.metadata.uid} ${manager}`;
        const next = applyConfiguration(current, this.#applied.get(key), request.json) as StoredObject;
        this.#applied.set(key, request.json);
        return withManager(next, manager);
      }
      case undefined:
      default:
        return undefined;
    }
  }

  #store(target: Target, request: StoreRequest, current: StoredObject, next: StoredObject): Answer {
    const allowed = ['status', 'approval'].includes(target.subresource)
      ? { ...current, status: next.status }
      : { ...next, status: current.status };
    const result = defined(allowed);
    if (isDeepStrictEqual(result, current)) return { status: 200, body: current };
    if (request.query.get('dryRun') === 'All') return { status: 200, body: result };
    const stored = this.#options.objects.put(target, result);
    if (stored.metadata.deletionTimestamp !== undefined && (stored.metadata.finalizers ?? []).length === 0) {
      const isGraceful = this.#options.gracefulPods && target.resource === 'pods';
      if (!isGraceful) this.#options.objects.remove(target);
    }
    return { status: 200, body: stored };
  }
}

function defined(object: object): object {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

const knownPatches: ReadonlySet<string> = new Set([
  'application/json-patch+json',
  'application/merge-patch+json',
]);

function withManager(object: StoredObject, manager: string): StoredObject {
  const metadata = object.metadata as StoredObject['metadata'] & { managedFields?: { manager: string }[] };
  const others = (metadata.managedFields ?? []).filter((each) => each.manager !== manager);
  const managedFields = [...others, { manager, operation: 'Apply' }];
  return { ...object, metadata: { ...metadata, managedFields } };
}
