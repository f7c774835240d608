/**
 * Places for lookups. Neither a namespace nor a registry host can use them up (`fair-semaphore.ts`), nor can many
 * slow hosts together: those that did not answer well share a few places.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import { FairSemaphore, FairSemaphores, type Leave } from '../../async/fair-semaphore.ts';
import type { ImageFacts, ImageRequest } from '../facts/facts.ts';

/** Each waiting lookup holds some kilobytes. Two thousand pods of a namespace may wait for new images. */
const maxWaiting = 8192;
/** Image references choose hosts. */
const maxHosts = 4096;
/** A failure after this time: the host kept its caller waiting. A quick one may be of one repository. */
const slowMs = 1000;
/** A third, 11, is for one namespace: a burst of new images must not wait. More waiting lookups would time out. */
const unproven = { places: 32, maxWaiting: 4096 };

export function createLookupPlaces(places: number, placesPerHost: number) {
  const all = new FairSemaphore({ places, maxWaiting });
  const ofHosts = new FairSemaphores({ places: placesPerHost, maxWaiting });
  const ofUnproven = new FairSemaphore({ ...unproven, places: Math.min(unproven.places, placesPerHost) });
  /** Hosts that gave facts at their last lookup. */
  const proven = new BoundedMap<string, true>(maxHosts);
  const ofHost = (host: string) => (proven.get(host) ? ofHosts.get(host) : ofUnproven);

  return {
    /** A place, if one is free. */
    tryEnter: (request: ImageRequest): Leave | undefined => {
      const { namespace = '' } = request;
      const leaveHost = ofHost(hostOf(request)).tryEnter(namespace);
      const leave = leaveHost && all.tryEnter(namespace);
      if (!leave) leaveHost?.();
      return leave && both(leave, leaveHost);
    },
    /** Waits at a slow host without a place that others need. @throws Overloaded, or the signal's reason */
    enter: async (request: ImageRequest, signal: AbortSignal): Promise<Leave> => {
      const { namespace = '' } = request;
      const leaveHost = await ofHost(hostOf(request)).enter(namespace, signal);
      try {
        return both(await all.enter(namespace, signal), leaveHost);
      } catch (error) {
        leaveHost();
        throw error;
      }
    },
    /** The answer for an image of a host, after `tookMs`. */
    answered: (request: Named, facts: ImageFacts, tookMs = 0): void => {
      const host = hostOf(request);
      if (!facts.error && !facts.stale) proven.set(host, true);
      else if (facts.error && tookMs >= slowMs) proven.delete(host);
    },
  };
}

type Named = Pick<ImageRequest, 'reference' | 'shortName'>;

/** Nodes find the registries of short names, which say nothing about `docker.io`. No host has a blank. */
function hostOf({ reference, shortName }: Named): string {
  return shortName === undefined ? reference.domain : 'short names';
}

function both(leave: Leave, leaveHost: Leave): Leave {
  return () => {
    leave();
    leaveHost();
  };
}
