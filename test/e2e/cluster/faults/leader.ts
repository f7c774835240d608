/** Who leads, told by the Lease; and times by which a new leader is there within seconds. */
import type { KubeClient } from '../../../../src/kube/api/client.ts';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import { ownNamespace, type Settings } from '../archwright.ts';
import { waitFor } from '../watch.ts';

type Lease = KubeObject & { readonly spec?: { readonly holderIdentity?: string } };

export const shortLease: Settings = {
  'lease-duration': '3s',
  'lease-renew-deadline': '2s',
  'lease-retry-period': '300ms',
};

const path = `/apis/coordination.k8s.io/v1/namespaces/${ownNamespace}/leases/archwright-controller`;

/** Waits until a controller leads; by the part of its identity before the underscore. */
export async function leaderOf(
  client: KubeClient,
  isIt: (name: string) => boolean = (name) => name !== '',
): Promise<string> {
  const lease = await waitFor<Lease>(client, path, (now) => isIt(nameOf(now)));
  return nameOf(lease);
}

function nameOf(lease: Lease | undefined): string {
  return lease?.spec?.holderIdentity?.split('_')[0] ?? '';
}
