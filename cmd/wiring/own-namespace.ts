/** archwright's namespace, for a person who names none. */
import { ownNames } from '../../src/names/own-names.ts';
import { namespacesOfLease } from '../../src/clean/lease.ts';
import { ignoring } from '../../src/kube/api/errors.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { UsageError } from '../program/exit.ts';
import type { Kubernetes } from './kubernetes.ts';
import { listReleases, usualName } from './release.ts';

/**
 * In a pod the pod's own; else that of the chart's ConfigMap; without one, or the right to list them, of the
 * Lease; without the right to list either, the usual one.
 * @throws UsageError if there are several
 */
export async function findNamespace(
  { client, access, podNamespace }: Kubernetes,
  configuration: Pick<Configuration, 'name'>,
  signal: AbortSignal,
): Promise<string> {
  if (podNamespace !== undefined) return podNamespace;
  const releases = await ignoring('forbidden', listReleases(client, undefined, signal));
  const namespaces = new Set(releases?.map(({ namespace }) => namespace));
  const ofLease =
    namespaces.size > 0 ? [] : await namespacesOfLease(client, ownNames(configuration).lease, signal);
  if (releases === undefined && ofLease === undefined) return usualName;
  const [found, ...more] = [...namespaces, ...(ofLease ?? [])];
  if (more.length === 0) return found ?? access.namespace;
  const list = [found, ...more].join(', ');
  throw new UsageError(`archwright runs in several namespaces (${list}): select one with --namespace`);
}
