/**
 * What runs, as gauges: how many different images of running pods have each platform, and how many pods run on each
 * architecture. That says how much of a cluster could move to another architecture before anybody buys nodes of it.
 *
 * No registry is asked for it: facts are those in memory, where what the agents know is added now and then. An image that was
 * pulled before archwright came, or with a pull secret, counts as unknown until a pod with it is created.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { ImageFacts } from '../../images/facts/facts.ts';
import { createReferenceCache } from '../../images/references/reference-cache.ts';
import { InvalidReference } from '../../images/references/reference.ts';
import type { Feature, Leading } from '../leadership/leading.ts';
import {
  architectures,
  runningImages,
  runningImagesUnknown,
  runningPods,
  systems,
  variants,
} from '../metrics.ts';

const everyMs = 60_000;
/** Rounds between two looks at what the agents know. */
const roundsBetweenLooks = 10;
const lookMs = 30_000;

/** What a platform counts as: values that a label does not have become `other`. */
interface PlatformLabels {
  readonly os: string;
  readonly architecture: string;
  readonly variant: string;
}

/** Works while this replica leads. */
export const countRunningImages: Feature = async (leading) => {
  const { signal, metrics, caches, memory, log } = leading;
  const levels = new Map<string, ReturnType<typeof metrics.gauge>>();
  for (const os of systems)
    for (const architecture of architectures)
      for (const variant of variants) {
        const labels = { os, architecture, variant };
        levels.set(keyOf(labels), metrics.gauge(runningImages, labels));
      }
  const pods = new Map(
    architectures.map((name) => [name as string, metrics.gauge(runningPods, { architecture: name })]),
  );
  const unknown = metrics.gauge(runningImagesUnknown);
  const parse = createReferenceCache();

  // Pods without their nodes would count as of another architecture.
  await caches.ready(signal).catch(() => undefined);
  for (let round = 0; !signal.aborted; round++) {
    try {
      if (leading.configuration().runningImagesMetric) await count(round);
    } catch (error) {
      if (signal.aborted) break;
      log.warn(
        { error: error instanceof Error ? error.message : String(error) },
        'running images could not be counted',
      );
    }
    await pause(everyMs, undefined, { signal }).catch(() => undefined);
  }
  // The next leader counts; two replicas must not both show the same pods.
  for (const level of [...levels.values(), ...pods.values(), unknown]) level.set(0);

  async function count(round: number): Promise<void> {
    const podsBy = new Map<string, number>();
    const images = new Set<string>();
    for (const pod of caches.runningPods.values()) {
      if (pod.phase !== 'Running') continue;
      add(podsBy, bounded(caches.nodes.get('', pod.node)?.architecture ?? 'other', architectures));
      for (const { image } of pod.images) images.add(image);
    }
    for (const [name, level] of pods) level.set(podsBy.get(name) ?? 0);
    if (round % roundsBetweenLooks === 0) await lookAtAgents(leading);
    const imagesBy = new Map<string, number>();
    let without = 0;
    for (const image of images) {
      const facts = factsOf(image);
      if (facts === undefined) without++;
      else
        for (const key of new Set(facts.platforms.map((platform) => keyOf(labelsOf(platform)))))
          add(imagesBy, key);
    }
    for (const [key, level] of levels) level.set(imagesBy.get(key) ?? 0);
    unknown.set(without);
  }

  function factsOf(image: string): ImageFacts | undefined {
    try {
      return memory.lastKnown({
        image,
        reference: parse(image),
        pullPolicy: 'IfNotPresent',
        pullCredentials: [],
      });
    } catch (error) {
      if (error instanceof InvalidReference) return undefined;
      throw error;
    }
  }
};

/** Agents that cannot tell now are asked again later; what memory has is enough until then. */
async function lookAtAgents({ fleet, memory, signal, log }: Leading): Promise<void> {
  if (fleet === undefined) return;
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(lookMs)]);
    for await (const facts of fleet.shared(limit)) memory.learn(facts);
  } catch (error) {
    if (!signal.aborted)
      log.debug({ error: error instanceof Error ? error.message : String(error) }, 'agents told nothing');
  }
}

function labelsOf({ os, architecture, variant = '' }: ImageFacts['platforms'][number]): PlatformLabels {
  return {
    os: bounded(os, systems),
    architecture: bounded(architecture, architectures),
    variant: bounded(variant === '' ? 'none' : variant, variants),
  };
}

function bounded(value: string, values: readonly string[]): string {
  return values.includes(value) ? value : 'other';
}

function keyOf({ os, architecture, variant }: PlatformLabels): string {
  return `${os}/${architecture}/${variant}`;
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
