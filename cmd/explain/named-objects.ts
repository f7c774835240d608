/** Objects of the cluster by kubectl's names (`pod/web-0`), explained as if they were created now. */
import type { KubeClient } from '../../src/kube/api/client.ts';
import { namespacedPath, paths } from '../../src/kube/api/paths.ts';
import { ignoring, KubeError } from '../../src/kube/api/errors.ts';
import type { Pod } from '../../src/kube/api/objects.ts';
import { didYouMean } from '../../src/names/suggestion.ts';
import { isRecord } from '../../src/names/values.ts';
import { texts, type FoundObject } from '../objects/documents.ts';
import { UsageError } from '../program/exit.ts';

/** Names of `kubectl api-resources`. */
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

type NamedObject = ReturnType<typeof parseNamedObject>;

/** Parses `KIND/NAME …`, or `KIND NAME …`, as kubectl does. @throws UsageError for anything else */
export function parseNamedObjects(texts: readonly string[]): readonly NamedObject[] {
  const [kind = '', ...names] = texts;
  if (texts.length < 2 || texts.some((text) => text.includes('/'))) return texts.map(parseNamedObject);
  const resource = resourceOf(kind, texts.join(' '));
  return names.map((name) => ({ resource, name }));
}

function parseNamedObject(text: string) {
  const [word = '', name = '', ...more] = text.split('/');
  if (name === '' || more.length > 0) {
    throw new UsageError(`${text} is not an object; use KIND/NAME such as pod/web-0, or -f FILE`);
  }
  return { resource: resourceOf(word, text), name };
}

function resourceOf(word: string, text: string): Resource {
  const resource = resources.find((each) => wordsOf(each).includes(word.toLowerCase()));
  if (resource) return resource;
  throw new UsageError(
    `${text}: ${word} is not a kind with pods${didYouMean(word, resources.flatMap(wordsOf))}`,
  );
}

/** A GET by name takes milliseconds. */
const limitMs = 10_000;

/** @param onProblem called with the reason for each object that does not exist or cannot be read */
export async function readNamedObjects(
  named: readonly NamedObject[],
  client: KubeClient,
  namespace: string,
  stop: AbortSignal,
  onProblem: (message: string) => void,
): Promise<readonly FoundObject[]> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(limitMs)]);
  const found = await Promise.all(
    named.map(async ({ resource, name }) => {
      const { apiVersion, kind, plural } = resource;
      const path = namespacedPath(apiVersion, plural)(namespace, name);
      try {
        const object = await client.get<object>(path, { signal });
        const named = asIfNew({ ...object, apiVersion, kind });
        const pods = kind === 'Pod' ? undefined : await podsOf(object, client, namespace, signal);
        return [
          { ...named, ...(pods && { pods }), file: `${kind.toLowerCase()}/${name} in ${namespace}`, line: 0 },
        ];
      } catch (error) {
        stop.throwIfAborted();
        if (!(error instanceof KubeError)) throw error;
        if (error.code === 'not-found')
          onProblem(`there is no ${kind} ${name} in the namespace ${namespace}; -n sets another namespace`);
        else onProblem(error.message);
        return [];
      }
    }),
  );
  return found.flat();
}

/** The table shows a few, and their outcomes rarely differ. */
const maxPods = 20;

/** @returns `undefined` for a workload without a selector, such as a CronJob, or without the permission */
async function podsOf(
  { spec }: { readonly spec?: unknown },
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly Pod[] | undefined> {
  const labelSelector = selectorText(isRecord(spec) ? spec['selector'] : undefined);
  if (labelSelector === '') return undefined;
  const query = { labelSelector, limit: maxPods };
  const list = client.get<{ readonly items?: readonly Pod[] }>(paths.pods(namespace), { signal, query });
  return (await ignoring(['forbidden', 'not-found', 'invalid', 'bad-answer'], list))?.items;
}

/** A `LabelSelector` as a query; empty if it selects nothing or everything. */
function selectorText(selector: unknown): string {
  if (!isRecord(selector)) return '';
  const { matchLabels, matchExpressions } = selector;
  const equal = Object.entries(texts(matchLabels)).map(([key, value]) => `${key}=${value}`);
  const expressions = Array.isArray(matchExpressions) ? matchExpressions.filter(isRecord) : [];
  const others = expressions.map(({ key, operator, values }) => {
    if (operator === 'Exists') return String(key);
    if (operator === 'DoesNotExist') return `!${String(key)}`;
    return `${String(key)} ${operator === 'In' ? 'in' : 'notin'} (${[values].flat().join(',')})`;
  });
  return [...equal, ...others].join(',');
}

/** Removes a running pod's node: with one there would be nothing to decide. */
function asIfNew(object: Readonly<Record<string, unknown>>): Pick<FoundObject, 'value' | 'node'> {
  const { status: _, ...rest } = object;
  const spec = rest['spec'];
  if (object['kind'] !== 'Pod' || !isRecord(spec)) return { value: rest };
  const { nodeName, ...free } = spec;
  return {
    value: { ...rest, spec: free },
    ...(typeof nodeName === 'string' && nodeName !== '' && { node: nodeName }),
  };
}
