/** At most so many requests to one host at a time; the others wait in the order in which they came. */

/** Registries and their proxies throttle clients with many connections; eight keep a node busy. */
export const defaultPerHost = 8;

export interface Gate {
  /**
   * Waits for a place at a host.
   * @returns what gives the place back; calling it twice does no harm
   * @throws the signal's reason where it aborts first
   */
  enter(host: string, signal: AbortSignal): Promise<() => void>;
}

interface Host {
  inside: number;
  readonly waiting: Set<() => void>;
}

export function createGate(perHost = defaultPerHost): Gate {
  const hosts = new Map<string, Host>();

  function leave(name: string, host: Host): () => void {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const [next] = host.waiting;
      if (next) {
        host.waiting.delete(next);
        next();
        return;
      }
      host.inside -= 1;
      if (host.inside === 0) hosts.delete(name);
    };
  }

  return {
    enter: async (name, signal) => {
      signal.throwIfAborted();
      const host = hosts.get(name) ?? { inside: 0, waiting: new Set() };
      hosts.set(name, host);
      if (host.inside < perHost) {
        host.inside += 1;
        return leave(name, host);
      }
      await new Promise<void>((resolve, reject) => {
        const go = (): void => {
          signal.removeEventListener('abort', abort);
          resolve();
        };
        const abort = (): void => {
          host.waiting.delete(go);
          reject(signal.reason as Error);
        };
        host.waiting.add(go);
        signal.addEventListener('abort', abort, { once: true });
      });
      return leave(name, host);
    },
  };
}
