/** All of archwright for a cluster, with registries of images. */
import type { KubeClient } from '../../../../src/kube/api/client.ts';
import type { KubeObject } from '../../../../src/kube/api/objects.ts';
import { paths } from '../../../../src/kube/api/paths.ts';
import {
  configureWebhook,
  ownNamespace,
  prepareArchwright,
  startAgent,
  startController,
  startWebhook,
  type Settings,
  type TlsDirs,
} from './archwright.ts';
import type { Cluster } from '../harness.ts';
import type { Tuning } from './controller.ts';
import { startImages, type Images } from './images.ts';
import { waitFor } from '../control-plane/watch.ts';

/** With them a new leader is there within seconds. */
export const shortLease: Tuning = {
  leaseTimes: { leaseDurationMs: 3000, renewDeadlineMs: 2000, retryPeriodMs: 300 },
};

export interface AdmissionOptions {
  readonly failurePolicy?: 'Ignore' | 'Fail';
  /** Whether the API server calls the webhook for DaemonSets too. */
  readonly daemonSets?: boolean;
  readonly images?: Images;
  readonly tls?: TlsDirs;
  readonly settings?: Settings;
}

/** An agent with the registries' certificates and logins, and a webhook that the API server calls. */
export async function startAdmission(cluster: Cluster, options: AdmissionOptions = {}) {
  const { failurePolicy = 'Ignore', daemonSets = false } = options;
  const images = options.images ?? (await startImages(cluster));
  const tls = options.tls ?? (await prepareArchwright(cluster));
  const ofAgent = { ...images.settings, ...images.hostSettings };
  const agents = [await startAgent(cluster, { tls, settings: ofAgent })] as const;
  const { settings = {} } = options;
  const webhook = await startWebhook(cluster, { tls, agents, settings });
  await configureWebhook(cluster, { tls, webhook, failurePolicy, daemonSets });
  return { images, tls, agents, webhook };
}

/** The same with a controller. Resolves when it leads; before, no pod is gated. @param more its settings */
export async function startArchwright(cluster: Cluster, options: AdmissionOptions = {}, more: Settings = {}) {
  const admission = await startAdmission(cluster, options);
  const { tls, agents } = admission;
  const controller = await startController(cluster, {
    tls,
    agents,
    settings: { ...options.settings, ...more },
  });
  await leaderOf(cluster.client);
  return { ...admission, controller };
}

type Lease = KubeObject & { readonly spec?: { readonly holderIdentity?: string } };

/** Waits until a controller leads. @returns its name: the identity up to the underscore */
export async function leaderOf(
  client: KubeClient,
  isIt: (name: string) => boolean = (name) => name !== '',
): Promise<string> {
  const path = paths.leases(ownNamespace, 'archwright-controller');
  const nameIn = (lease: Lease | undefined): string => lease?.spec?.holderIdentity?.split('_')[0] ?? '';
  return nameIn(await waitFor<Lease>(client, path, (lease) => isIt(nameIn(lease))));
}
