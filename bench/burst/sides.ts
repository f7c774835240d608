/**
 * The compared sides: the cluster without archwright; with an archwright that knows all images; with one that
 * has placed pods of other images; with one that has just started. Registries respond with a delay, as real
 * ones do; a single-arch image takes two requests.
 */
import type { KubeClient } from '../../src/kube/api/client.ts';
import type { KubeObject } from '../../src/kube/api/objects.ts';
import {
  configureWebhook,
  ownNamespace,
  startAgent,
  startController,
  startWebhook,
  type Server,
  type TlsDirs,
} from '../../test/e2e/cluster/archwright/archwright.ts';
import type { Cluster } from '../../test/e2e/cluster/harness.ts';
import { waitFor } from '../../test/e2e/cluster/control-plane/watch.ts';
import type { Images } from '../../test/e2e/cluster/archwright/images.ts';
import { createBurst, deletePods, podOf } from './load.ts';
import { concurrently } from '../../src/async/concurrently.ts';

type Lease = KubeObject & { readonly spec?: { readonly holderIdentity?: string } };

export type SideName = 'without' | 'warm' | 'cold' | 'cold, slow registry' | 'just started';

export interface Side {
  readonly name: SideName;
  /** Before one burst. */
  open(): Promise<ReadonlyMap<string, number>>;
  close(): Promise<void>;
}

export interface SidesOptions {
  readonly cluster: Cluster;
  readonly tls: TlsDirs;
  readonly images: Images;
  /** Images of the pods that are measured, and others of the same kinds. */
  readonly references: readonly string[];
  readonly others: readonly string[];
  readonly namespace: string;
}

/** Round trip and work of a registry on the internet. */
export const registryMs = 100;
/** Longer than admission waits: every new image leads to gates. */
export const slowRegistryMs = 400;
/** Until the optimizing compiler has finished an admission's code. */
const warmUpPods = 600;
/** The part of them that is created, for the controller. */
const warmUpBurst = { pods: 100, rate: 50 };

const politeMs = 10_000;
/** Controllers so far; each has a unique name. */
let started = 0;

const webhookPath = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archwright';

export function sidesOf(options: SidesOptions): readonly Side[] {
  const { references, others } = options;
  return [
    { name: 'without', open: async () => new Map(), close: async () => undefined },
    withArchwright(options, 'warm', { known: references, delayMs: registryMs }),
    withArchwright(options, 'cold', { known: others, delayMs: registryMs }),
    withArchwright(options, 'cold, slow registry', { known: others, delayMs: slowRegistryMs }),
    withArchwright(options, 'just started', { known: [], delayMs: registryMs }),
  ];
}

function withArchwright(
  { cluster, tls, images, namespace }: SidesOptions,
  name: SideName,
  { known, delayMs }: { readonly known: readonly string[]; readonly delayMs: number },
): Side {
  let running: readonly Server[] = [];
  return {
    name,
    open: async () => {
      images.public.faults.clear();
      images.public.faults.add(/manifests|blobs/, { kind: 'delay', ms: delayMs });
      const agent = await startAgent(cluster, { tls, settings: images.settings });
      const settings = { 'on-unknown-image': 'gate' };
      const webhook = await startWebhook(cluster, { tls, agents: [agent], settings });
      started += 1;
      const identity = `bench-${started}`;
      const controller = await startController(cluster, {
        tls,
        agents: [agent],
        settings,
        env: { HOSTNAME: identity },
      });
      await waitFor<Lease>(
        cluster.client,
        `/apis/coordination.k8s.io/v1/namespaces/${ownNamespace}/leases/archwright-controller`,
        (lease) => lease?.spec?.holderIdentity?.startsWith(`${identity}_`) === true,
      );
      running = [webhook, controller, agent];
      await configureWebhook(cluster, { tls, webhook });
      if (known.length > 0) await warmUp(cluster.client, namespace, known);
      return new Map([
        ['webhook', webhook.process.pid],
        ['agent', agent.process.pid],
        ['controller', controller.process.pid],
      ]);
    },
    close: async () => {
      await cluster.client.delete(webhookPath, { signal: AbortSignal.timeout(30_000) });
      // The controller releases its Lease; otherwise the next one waits.
      await Promise.all(running.map(({ process }) => process.stop(politeMs)));
    },
  };
}

/** Mostly dry runs, which the webhook handles like other requests. */
async function warmUp(client: KubeClient, namespace: string, images: readonly string[]): Promise<void> {
  await createBurst({ client, namespace, images, ...warmUpBurst });
  await deletePods(client, namespace);
  const pods = Array.from({ length: warmUpPods }, (_, index) => podOf({ images }, index));
  await concurrently(pods, 8, (pod) =>
    client.create(`/api/v1/namespaces/${namespace}/pods`, pod, {
      signal: AbortSignal.timeout(30_000),
      query: { dryRun: 'All' },
    }),
  );
}
