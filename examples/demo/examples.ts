/** The examples of `examples/pods`, each as the API server's request when a person applies the file. */
import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isSecret, parseObjects, storedSecret } from '../../cmd/objects/documents.ts';
import type { AdmissionRequest, KubeObject, Secret } from '../../src/kube/api/objects.ts';
import { DemoError } from './error.ts';

const dir = fileURLToPath(new URL('../pods/', import.meta.url));

export interface Example {
  /** Name of the file. */
  readonly file: string;
  /** The comment that opens it, line by line. */
  readonly comment: readonly string[];
  /** Secrets in the file, as the API server stores them. */
  readonly secrets: readonly Secret[];
  readonly request: AdmissionRequest;
}

/** Kinds of the examples: group, version and resource. */
const resources: Readonly<Record<string, readonly [group: string, version: string, resource: string]>> = {
  Pod: ['', 'v1', 'pods'],
  DaemonSet: ['apps', 'v1', 'daemonsets'],
  Deployment: ['apps', 'v1', 'deployments'],
  StatefulSet: ['apps', 'v1', 'statefulsets'],
  Job: ['batch', 'v1', 'jobs'],
  CronJob: ['batch', 'v1', 'cronjobs'],
};

/**
 * Reads all of them, by name.
 * @throws DemoError for a file that is no example
 */
export async function readExamples(): Promise<readonly Example[]> {
  const files = (await readdir(dir)).filter((name) => name.endsWith('.yaml')).sort();
  return await Promise.all(
    files.map(async (file) => readExample(file, await readFile(join(dir, file), 'utf8'))),
  );
}

function readExample(file: string, text: string): Example {
  const values = parseObjects({ file, text }).map(({ value }) => value);
  const [object, ...more] = values.filter((value) => !isSecret(value));
  if (object === undefined || more.length > 0) {
    throw new DemoError(`examples/pods/${file} must hold one pod or workload, and Secrets beside it`);
  }
  return {
    file,
    comment: commentOf(text),
    secrets: values.filter(isSecret).map(storedSecret),
    request: requestFor(file, object as KubeObject),
  };
}

function commentOf(text: string): string[] {
  const lines = text.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('#'));
  return lines.slice(0, end).map((line) => line.replace(/^# ?/, ''));
}

/** The request of an AdmissionReview (kubernetes staging/src/k8s.io/api/admission/v1/types.go). */
function requestFor(file: string, object: KubeObject): AdmissionRequest {
  const [group, version, resource] = resources[object.kind ?? ''] ?? [];
  if (group === undefined || version === undefined || resource === undefined) {
    throw new DemoError(
      `examples/pods/${file}: the demo cannot send a ${object.kind ?? 'thing without kind'}`,
    );
  }
  const kind = { group, version, kind: object.kind ?? '' };
  const { name = '', namespace = 'default' } = object.metadata ?? {};
  return {
    uid: randomUUID(),
    kind,
    resource: { group, version, resource },
    name,
    namespace,
    operation: 'CREATE',
    object,
    dryRun: false,
  };
}

/** The same request as a new one: an API server never uses a uid twice. */
export function sentAgain(request: AdmissionRequest): AdmissionRequest {
  return { ...request, uid: randomUUID() };
}

/** A request as the body that an API server sends. */
export function reviewOf(request: AdmissionRequest): string {
  return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
}
