/**
 * Gauges of what runs: how much of a cluster could move to another architecture. Sends no registry requests:
 * image facts come from the cache, which learns now and then what the agents have. An image that was pulled
 * before archwright was installed, or with a pull secret, is unknown until a pod with it is created.
 */
import { type ImageFacts, ofAnyAge } from '../../../images/facts/facts.ts';
import { createReferenceCache, validReference } from '../../../images/references/reference.ts';
import { countedArchitectures } from '../../../names/architecture.ts';
import { gauge, itemCounts } from '../../../telemetry/metrics.ts';
import type { Feature, LeaderContext } from '../../lead/feature.ts';
import { messageOf } from '../../../names/printable.ts';

const systems = ['linux', 'windows', 'other'] as const;
const variants = ['none', 'v5', 'v6', 'v7', 'v8', 'v2', 'v3', 'v4', 'other'] as const;

const runningImages = gauge('archwright_running_images', 'Distinct images of running pods, by platform.', {
  os: systems,
  architecture: countedArchitectures,
  variant: variants,
});

const runningImagesUnknown = gauge(
  'archwright_running_images_unknown',
  'Distinct images of running pods without facts.',
);

const runningPods = gauge('archwright_running_pods', 'Running pods, by the node’s architecture.', {
  architecture: countedArchitectures,
});

const resyncMs = 60_000;
/** The agents are queried in one of so many rounds. */
const roundsPerLook = 10;
const lookMs = 30_000;

export const runningImagesFeature: Feature = {
  name: 'running-images',
  metrics: [runningImages, runningImagesUnknown, runningPods],
  resyncMs,
  inRounds: true,
  // Not before the caches are complete: without their nodes, pods would count for a wrong architecture.
  start: (leader) => {
    const show = createGauges(leader);
    let round = 0;
    return {
      keys: () => ['all'],
      reconcile: async () => {
        show();
        if (round++ % roundsPerLook !== 0) return;
        await learnFromAgents(leader);
        show();
      },
    };
  },
};

/** @returns sets all gauges */
function createGauges({ metrics, cache, caches: { runningPods: all, nodes } }: LeaderContext): () => void {
  const parse = createReferenceCache();
  const showImages = itemCounts(metrics, runningImages);
  const unknown = metrics.gauge(runningImagesUnknown);
  const showPods = itemCounts(metrics, runningPods);
  const factsOf = (image: string): ImageFacts | undefined => {
    const reference = validReference(image, parse);
    if (!reference) return undefined;
    const facts = cache.peek(ofAnyAge({ image, reference, maxAgeMs: 0, pullCredentials: [] }));
    return facts?.error && facts.error.code !== 'not-an-image' ? undefined : facts;
  };
  return () => {
    const running = [...all.values()].filter(({ phase }) => phase === 'Running');
    showPods(running, ({ node }) => [{ architecture: nodes.get('', node)?.architecture ?? '' }]);
    const images = new Set(running.flatMap((pod) => pod.images.map(({ image }) => image)));
    const known = [...images].flatMap((image) => factsOf(image) ?? []);
    showImages(known, ({ platforms }) =>
      platforms.map(({ os, architecture, variant }) => ({ os, architecture, variant: variant || 'none' })),
    );
    unknown.set(images.size - known.length);
  };
}

/** Agents that do not answer are queried again later; the cache suffices until then. */
async function learnFromAgents({ fleet, cache, signal, log }: LeaderContext): Promise<void> {
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(lookMs)]);
    await fleet?.readShared((facts) => cache.learn(facts), limit);
  } catch (error) {
    if (signal.aborted) return;
    log.debug({ error: messageOf(error) }, 'the agents did not list their image facts');
  }
}
