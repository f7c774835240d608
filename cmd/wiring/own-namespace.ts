/** archwright's namespace, for a person who names none. */
import { namespacesOfLease } from '../../src/controller/clean/lease.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import { UsageError } from '../program/subcommand.ts';
import type { Kubernetes } from './kubernetes.ts';

/** In a pod the pod's own, otherwise the namespace of the Lease. @throws UsageError if there are several */
export async function findNamespace(
  { client, access, podNamespace }: Kubernetes,
  { leaseName }: Pick<Configuration, 'leaseName'>,
  signal: AbortSignal,
): Promise<string> {
  if (podNamespace !== undefined) return podNamespace;
  const [found, ...more] = (await namespacesOfLease(client, leaseName, signal)) ?? [];
  if (more.length === 0) return found ?? access.namespace;
  const list = [found, ...more].join(', ');
  throw new UsageError(`archwright runs in several namespaces (${list}): select one with --namespace`);
}
