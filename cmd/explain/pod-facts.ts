/** Image facts of pods for `explain` and `report`: looked up as by the webhook, with more time. */
import { readConfigMaps } from '../../src/cluster/config-map.ts';
import { createFactsOfPod } from '../../src/cluster/facts-of-pod.ts';
import { createPullSecrets } from '../../src/cluster/pull-secrets.ts';
import { systemClock } from '../../src/async/clock.ts';
import { bindCounters } from '../../src/webhook/metrics.ts';
import {
  brokenImagesOf,
  noBrokenImages,
  parseBroken,
  type BrokenImage,
} from '../../src/images/sources/broken-images.ts';
import type { Configuration } from '../../src/policy/configuration/configuration.ts';
import type { CliContext } from '../program/context.ts';
import type { Invocation } from '../program/subcommand.ts';
import { openImageFacts } from '../wiring/image-facts.ts';
import { withOwnNamespace, type Kubernetes } from '../wiring/kubernetes.ts';
import type { PodContext } from './context.ts';

const discoveryMs = 5000;
/** A report of a large cluster reads each pull secret once. */
const keepSecretsMs = 600_000;
/** Time to read the pull secrets before the images are inspected. */
const readingSecretsMs = 6000;

/** @param opened closes what this opens */
export async function openPodFacts(
  {
    invocation,
    context,
    kubernetes,
    surroundings,
  }: {
    readonly invocation: Invocation;
    readonly context: CliContext;
    readonly kubernetes: Kubernetes | undefined;
    readonly surroundings: PodContext;
  },
  opened: AsyncDisposableStack,
) {
  const { configuration, dockerConfigs, log, metrics } = context;
  const { stop, io } = invocation;
  const { memory, fleet, ready } = await openImageFacts(
    {
      configuration: () => configuration,
      dockerConfigs,
      env: io.env,
      stop,
      client: kubernetes?.client,
      log,
      metrics,
    },
    opened,
  );
  const patience = AbortSignal.any([stop, AbortSignal.timeout(discoveryMs)]);
  await ready(patience).catch(() => undefined);
  // A refusal goes on to the other credential groups, so they must be known first.
  await fleet?.grouped(patience);
  const clock = systemClock;
  const pullSecrets = createPullSecrets({ cluster: surroundings, keepMs: keepSecretsMs, clock, metrics });
  const inForce = kubernetes ? withOwnNamespace(() => configuration, kubernetes)() : configuration;
  const brokenNotes = await brokenNotesAround(inForce, surroundings, stop);
  const broken = brokenNotes.length === 0 ? noBrokenImages : brokenImagesOf(brokenNotes, systemClock.now);
  const counters = bindCounters(metrics);
  return {
    factsOfPod: createFactsOfPod({ memory, pullSecrets, counters, broken, clock, log }),
    pullSecrets,
    fleet,
    brokenNotes,
    /** Time limit for the images of one pod. */
    budgetMs: configuration.inspectTimeout + readingSecretsMs,
  };
}

/**
 * Reads the notes on broken images (exec format errors) in the cluster, once.
 * @param configuration without a `namespace`, all namespaces are searched for the ConfigMap's name
 * @returns none without a cluster or without the permission
 */
async function brokenNotesAround(
  { namespace, brokenImagesName }: Configuration,
  surroundings: PodContext,
  stop: AbortSignal,
): Promise<readonly BrokenImage[]> {
  const found = await readConfigMaps({ namespace, name: brokenImagesName }, surroundings, stop);
  return (found ?? []).flatMap(parseBroken);
}
