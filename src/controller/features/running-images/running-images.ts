/**
 * Gauges of what runs: how much of a cluster could move to another architecture. Sends no registry requests:
 * image facts come from the cache, which learns now and then what the agents have. An image that was pulled
 * before archwright was installed, or with a pull secret, is unknown until a pod with it is created.
 */
import type { ImageFacts } from '../../../images/facts/facts.ts';
import { ofAnyAge } from '../../../images/image-request.ts';
import { createReferenceCache, validReference } from '../../../images/references/reference.ts';
import { countedArchitectures } from '../../../names/architecture.ts';
import { gauge, type Gauge, type Metrics } from '../../../telemetry/metrics.ts';
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

type Platform = ImageFacts['platforms'][number];

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
  readonly #images: ReadonlyMap<string, Gauge>;
  readonly #unknown: Gauge;
  readonly #pods: ReadonlyMap<string, Gauge>;
  #round = 0;

  constructor(leader: LeaderContext) {
    const { metrics } = leader;
    this.#leader = leader;
    this.#images = imageGauges(metrics);
    this.#unknown = metrics.gauge(runningImagesUnknown);
    this.#pods = new Map(
      countedArchitectures.map((architecture) => [
        architecture,
        metrics.gauge(runningPods, { architecture }),
      ]),
    );
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
    const architectureOf = (node: string): string => nodes.get('', node)?.architecture ?? 'other';
    showCounts(
      this.#pods,
      Map.groupBy(running, ({ node }) => listed(architectureOf(node), countedArchitectures)),
    );
    const images = new Set(running.flatMap((pod) => pod.images.map(({ image }) => image)));
    const facts = [...images].map((image) => this.#factsOf(image));
    const known = facts.filter((each) => each !== undefined);
    // An image counts once for a platform.
    const platforms = known.flatMap((each) => [...new Set(each.platforms.map(keyOf))]);
    showCounts(
      this.#images,
      Map.groupBy(platforms, (key) => key),
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

function imageGauges(metrics: Metrics): ReadonlyMap<string, Gauge> {
  const platforms = systems.flatMap((os) =>
    countedArchitectures.flatMap((architecture) =>
      variants.map((variant) => ({ os, architecture, variant })),
    ),
  );
  return new Map(platforms.map((each) => [keyOf(each), metrics.gauge(runningImages, each)]));
}

function keyOf({ os, architecture, variant }: Platform): string {
  return `${listed(os, systems)}/${listed(architecture, countedArchitectures)}/${listed(variant || 'none', variants)}`;
}

function listed(value: string, values: readonly string[]): string {
  return values.includes(value) ? value : 'other';
}

function showCounts(
  gauges: ReadonlyMap<string, Gauge>,
  groups: ReadonlyMap<string, readonly unknown[]>,
): void {
  for (const [key, each] of gauges) each.set(groups.get(key)?.length ?? 0);
}
