/**
 * At most so many requests to one host at a time; the others wait in the order in which they came. A mirror has a lane for
 * each registry behind it, and one lane gets at most half of the places: what is slow behind a mirror must not hold up
 * everything else that it serves.
 */

/**
 * Registries and their proxies throttle clients with many connections. Answers take 50 to 400 ms, so that these are the images
 * of 40 new pods a second and more.
 */
export const defaultPerHost = 16;

export interface HostSemaphore {
  /**
   * Waits for a place at a host.
   * @param lane what the request is for; the host itself, or a registry behind it
   * @returns what gives the place back; calling it twice does no harm
   * @throws the signal's reason where it aborts first
   */
  enter(host: string, signal: AbortSignal, lane?: string): Promise<() => void>;
}

interface Waiter {
  readonly lane: string;
  readonly go: () => void;
}

interface Host {
  inside: number;
  readonly lanes: Map<string, number>;
  readonly waiting: Set<Waiter>;
}

export function createHostSemaphore(perHost = defaultPerHost): HostSemaphore {
  const hosts = new Map<string, Host>();
  const perLane = Math.max(1, Math.ceil(perHost / 2));

  function hasRoom(name: string, host: Host, lane: string): boolean {
    return host.inside < perHost && (lane === name || (host.lanes.get(lane) ?? 0) < perLane);
  }

  /** Takes a place and returns what gives it back. */
  function take(name: string, host: Host, lane: string): () => void {
    host.inside += 1;
    host.lanes.set(lane, (host.lanes.get(lane) ?? 0) + 1);
    let left = false;
    return () => {
      if (left) return;
      left = true;
      leave(name, host, lane);
    };
  }

  function leave(name: string, host: Host, lane: string): void {
    host.inside -= 1;
    const inLane = (host.lanes.get(lane) ?? 1) - 1;
    if (inLane === 0) host.lanes.delete(lane);
    else host.lanes.set(lane, inLane);
    for (const waiter of host.waiting) {
      if (!hasRoom(name, host, waiter.lane)) continue;
      host.waiting.delete(waiter);
      waiter.go();
      return;
    }
    if (host.inside === 0) hosts.delete(name);
  }

  return {
    enter: async (name, signal, lane = name) => {
      signal.throwIfAborted();
      const host = hosts.get(name) ?? {
        inside: 0,
        lanes: new Map<string, number>(),
        waiting: new Set<Waiter>(),
      };
      hosts.set(name, host);
      if (hasRoom(name, host, lane)) return take(name, host, lane);
      return await new Promise<() => void>((resolve, reject) => {
        const waiter: Waiter = {
          lane,
          // The place is taken at once, so that nobody who comes later finds it free.
          go: () => {
            signal.removeEventListener('abort', abort);
            resolve(take(name, host, lane));
          },
        };
        const abort = (): void => {
          host.waiting.delete(waiter);
          reject(signal.reason as Error);
        };
        host.waiting.add(waiter);
        signal.addEventListener('abort', abort, { once: true });
      });
    },
  };
}
