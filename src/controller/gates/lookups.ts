/**
 * Looks up image facts for many pods at once: pods with the same images, pull secrets and service account
 * share one lookup; no worker waits for it. The number of open lookups is limited, and no namespace can use
 * it up. More keys wait for their turn, round robin over the namespaces.
 */
import { FairQueue } from '../../async/fair-queue.ts';
import { FairSemaphore, type Leave } from '../../async/fair-semaphore.ts';
import type { FactsByImage, FactsWanted } from '../../cluster/facts-of-pod.ts';
import type { Leading } from '../leadership/leading.ts';

export interface LookupListener {
  /** A lookup of the key has ended. `images`: their signature; the pod may have other images now. */
  readonly onFacts: (key: string, facts: FactsByImage, images: string) => void;
  /** The key can be looked up now. */
  readonly onTurn: (key: string) => void;
}

/** Each lookup may be a request to an agent. */
const defaultMaxOpen = 1024;
/** Facts come within their time limit; a defect there must not hold pods. */
const graceMs = 2000;

const noFacts: FactsByImage = new Map();

interface Lookup {
  readonly images: string;
  readonly keys: Set<string>;
  /** Absent for an urgent one, which needs no place. */
  readonly leave: Leave | undefined;
}

export class GateLookups {
  readonly #leading: Pick<Leading, 'factsOfPod' | 'clock' | 'log'>;
  readonly #listener: LookupListener;
  readonly #places: FairSemaphore;
  readonly #open = new Map<string, Lookup>();
  readonly #parked = new FairQueue<string>();
  #isStopped = false;

  constructor(
    leading: Pick<Leading, 'factsOfPod' | 'clock' | 'log'>,
    listener: LookupListener,
    maxOpen = defaultMaxOpen,
  ) {
    this.#leading = leading;
    this.#listener = listener;
    this.#places = new FairSemaphore({ places: maxOpen });
  }

  /**
   * Starts or joins a lookup for the key. @param isUrgent whether it needs no turn
   * @returns the known facts; `undefined`: `onFacts` or `onTurn` is called for the key later
   */
  find(key: string, wanted: FactsWanted, isUrgent = false): FactsByImage | undefined {
    const images = signatureOf(wanted);
    // A short lookup does not wait for the end of a long one.
    const id = `${wanted.budgetMs} ${images}`;
    const open = this.#open.get(id);
    if (open !== undefined) {
      open.keys.add(key);
      return undefined;
    }
    const leave = this.#places.tryEnter(wanted.namespace);
    if (!leave && !isUrgent) {
      this.#parked.add(wanted.namespace, key);
      return undefined;
    }
    const found = this.#leading.factsOfPod(wanted);
    if (!(found instanceof Promise)) {
      leave?.();
      return found;
    }
    this.#open.set(id, { images, keys: new Set([key]), leave });
    void this.#follow(id, found, wanted.budgetMs);
    return undefined;
  }

  stop(): void {
    this.#isStopped = true;
    this.#open.clear();
    this.#parked.clear();
  }

  async #follow(id: string, facts: Promise<FactsByImage>, budgetMs: number): Promise<void> {
    const { clock, log } = this.#leading;
    const cancel = clock.timer(budgetMs + graceMs, () => this.#settle(id, noFacts));
    try {
      this.#settle(id, await facts);
    } catch (error) {
      log.error({ err: error }, 'image facts of a gated pod could not be looked up');
      this.#settle(id, noFacts);
    } finally {
      cancel();
    }
  }

  #settle(id: string, facts: FactsByImage): void {
    const lookup = this.#open.get(id);
    if (lookup === undefined || this.#isStopped) return;
    this.#open.delete(id);
    lookup.leave?.();
    for (const key of lookup.keys) this.#listener.onFacts(key, facts, lookup.images);
    // Every free place is offered: a parked pod may be gone meanwhile and not take its turn.
    const offered: Leave[] = [];
    const mayGo = (namespace: string): boolean => {
      const leave = this.#places.tryEnter(namespace);
      if (leave) offered.push(leave);
      return leave !== undefined;
    };
    for (let key = this.#parked.take(mayGo); key !== undefined; key = this.#parked.take(mayGo))
      this.#listener.onTurn(key);
    for (const leave of offered) leave();
  }
}

export function signatureOf({ uses, namespace, pullSecrets, serviceAccount }: FactsWanted): string {
  return JSON.stringify([
    namespace,
    pullSecrets.names,
    serviceAccount?.name,
    uses.map(({ image, pullPolicy }) => [image, pullPolicy]),
  ]);
}
