/**
 * Objects of the cluster by kubectl's names: `pod/web-0`, `deploy/web`. They are explained as if they were created now,
 * without a pod's node, which is kept apart. The decision record shows what archwright added.
 */
import type { KubeClient } from '../../src/kube/api/client.ts';
import { namespacedPath } from '../../src/kube/api/paths.ts';
import { KubeError } from '../../src/kube/api/errors.ts';
import { didYouMean } from '../../src/names/suggestion.ts';
import { isObject } from '../../src/webhook/validate-pod.ts';
import type { FoundObject } from '../objects/documents.ts';
import { UsageError } from '../program/subcommand.ts';

/** As in `kubectl api-resources`. */
const resources = [
  { apiVersion: 'v1', kind: 'Pod', plural: 'pods', shortNames: ['po'] },
  { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments', shortNames: ['deploy'] },
  { apiVersion: 'apps/v1', kind: 'StatefulSet', plural: 'statefulsets', shortNames: ['sts'] },
  { apiVersion: 'apps/v1', kind: 'DaemonSet', plural: 'daemonsets', shortNames: ['ds'] },
  { apiVersion: 'apps/v1', kind: 'ReplicaSet', plural: 'replicasets', shortNames: ['rs'] },
  { apiVersion: 'batch/v1', kind: 'Job', plural: 'jobs', shortNames: [] },
  { apiVersion: 'batch/v1', kind: 'CronJob', plural: 'cronjobs', shortNames: ['cj'] },
];

type Resource = (typeof resources)[number];

function wordsOf({ kind, plural, shortNames }: Resource): readonly string[] {
  return [kind.toLowerCase(), plural, ...shortNames];
}

interface NamedObject {
  readonly resource: Resource;
  readonly name: string;
}

/** Parses `KIND/NAME`. @throws UsageError for anything else */
export function parseNamedObject(text: string): NamedObject {
  const [word = '', name = '', ...more] = text.split('/');
  if (name === '' || more.length > 0) {
    throw new UsageError(`${text} is not an object; use KIND/NAME such as pod/web-0, or -f FILE`);
  }
  const resource = resources.find((each) => wordsOf(each).includes(word.toLowerCase()));
  if (resource === undefined) {
    const known = resources.flatMap(wordsOf);
    throw new UsageError(`${text}: ${word} is not a kind with pods${didYouMean(word, known)}`);
  }
  return { resource, name };
}

/** A GET by name takes milliseconds. */
const limitMs = 10_000;

/**
 * Gets the objects.
 * @param namespace namespace of all objects
 * @throws UsageError if one does not exist or cannot be read
 */
export async function readNamedObjects(
  named: readonly NamedObject[],
  client: KubeClient,
  namespace: string,
  stop: AbortSignal,
): Promise<readonly FoundObject[]> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(limitMs)]);
  return await Promise.all(
    named.map(async ({ resource, name }) => {
      const { apiVersion, kind, plural } = resource;
      const path = namespacedPath(apiVersion, plural)(namespace, name);
      try {
        const object = await client.get<object>(path, { signal });
        const named = asIfNew({ ...object, apiVersion, kind });
        return { ...named, file: `${kind.toLowerCase()}/${name} in ${namespace}`, line: 1 };
      } catch (error) {
        if (error instanceof KubeError) throw new UsageError(error.message);
        throw error;
      }
    }),
  );
}

/** Removes a running pod's node: with one there would be nothing to decide. */
function asIfNew(object: Readonly<Record<string, unknown>>): Pick<FoundObject, 'value' | 'node'> {
  const { status: _, ...rest } = object;
  const spec = rest['spec'];
  if (object['kind'] !== 'Pod' || !isObject(spec)) return { value: rest };
  const { nodeName, ...free } = spec;
  return {
    value: { ...rest, spec: free },
    ...(typeof nodeName === 'string' && nodeName !== '' && { node: nodeName }),
  };
}
