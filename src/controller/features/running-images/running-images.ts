/**
 * Gauges of what runs: how much of a cluster could move to another architecture. Sends no registry requests:
 * image facts come from the cache, which learns now and then what the agents have. An image that was pulled
 * before archwright was installed, or with a pull secret, is unknown until a pod with it is created.
 */
import type { ImageFacts } from '../../../images/facts/facts.ts';
import { ofAnyAge } from '../../../images/image-request.ts';
import { createReferenceCache, validReference } from '../../../images/references/reference.ts';
import { countedArchitectures } from '../../../names/architecture.ts';
import { gauge, itemCounts, type Gauge } from '../../../telemetry/metrics.ts';
import type { Feature } from '../../lead/feature.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';
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
    const counter = new RunningImages(leader);
    return { keys: () => ['all'], reconcile: () => counter.reconcile() };
  },
};

class RunningImages {
  readonly #leader: LeaderContext;
  readonly #parse = createReferenceCache();
  readonly #showImages: ReturnType<typeof itemCounts>;
  readonly #unknown: Gauge;
  readonly #showPods: ReturnType<typeof itemCounts>;
  #round = 0;

  constructor(leader: LeaderContext) {
    const { metrics } = leader;
    this.#leader = leader;
    this.#showImages = itemCounts(metrics, runningImages);
    this.#unknown = metrics.gauge(runningImagesUnknown);
    this.#showPods = itemCounts(metrics, runningPods);
  }

  async reconcile(): Promise<void> {
    this.#show();
    if (this.#round++ % roundsPerLook === 0) {
      await this.#learnFromAgents();
      this.#show();
    }
  }

  #show(): void {
    const { runningPods: all, nodes } = this.#leader.caches;
    const running = [...all.values()].filter(({ phase }) => phase === 'Running');
    this.#showPods(running, ({ node }) => [{ architecture: nodes.get('', node)?.architecture ?? '' }]);
    const images = new Set(running.flatMap((pod) => pod.images.map(({ image }) => image)));
    const facts = [...images].map((image) => this.#factsOf(image));
    const known = facts.filter((each) => each !== undefined);
    this.#showImages(known, ({ platforms }) =>
      platforms.map(({ os, architecture, variant }) => ({ os, architecture, variant: variant || 'none' })),
    );
    this.#unknown.set(facts.length - known.length);
  }

  #factsOf(image: string): ImageFacts | undefined {
    const reference = validReference(image, this.#parse);
    if (!reference) return undefined;
    const facts = this.#leader.cache.peek(ofAnyAge({ image, reference, maxAgeMs: 0, pullCredentials: [] }));
    return facts?.error && facts.error.code !== 'not-an-image' ? undefined : facts;
  }

  /** Agents that do not answer are queried again later; the cache suffices until then. */
  async #learnFromAgents(): Promise<void> {
    const { fleet, cache, signal, log } = this.#leader;
    if (fleet === undefined) return;
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(lookMs)]);
      await fleet.readShared((facts) => cache.learn(facts), limit);
    } catch (error) {
      if (signal.aborted) return;
      log.debug({ error: messageOf(error) }, 'the agents did not list their image facts');
    }
  }
}
