/**
 * Looks up image facts for many pods at once: pods with the same images, pull secrets and service account share one lookup,
 * and no worker waits for it. The number of open lookups is limited; more keys wait for their turn.
 */
import type { FactsByImage, FactsWanted } from '../../cluster/facts-of-pod.ts';
import type { Leading } from '../leadership/leading.ts';

export interface LookupListener {
  /** A lookup of the key has ended. `images`: the signature of its images, which the pod may no longer have. */
  readonly onFacts: (key: string, facts: FactsByImage, images: string) => void;
  /** The key can be looked up now. */
  readonly onTurn: (key: string) => void;
}

/** Each lookup may be a request to an agent. Hanging ones must not block the others. */
const defaultMaxOpen = 512;
/** Facts come within their time limit; a defect there must not hold pods. */
const graceMs = 2000;

const noFacts: FactsByImage = new Map();

interface Lookup {
  readonly images: string;
  readonly keys: Set<string>;
}

export class GateLookups {
  readonly #leading: Pick<Leading, 'factsOfPod' | 'clock' | 'log'>;
  readonly #listener: LookupListener;
  readonly #maxOpen: number;
  readonly #open = new Map<string, Lookup>();
  readonly #parked = new Set<string>();
  #isStopped = false;

  constructor(
    leading: Pick<Leading, 'factsOfPod' | 'clock' | 'log'>,
    listener: LookupListener,
    maxOpen = defaultMaxOpen,
  ) {
    this.#leading = leading;
    this.#listener = listener;
    this.#maxOpen = maxOpen;
  }

  /**
   * Starts a lookup for the key, or joins the one that is open. @param isUrgent whether it needs no turn
   * @returns the facts if they are known; else `undefined`, and `onFacts` or `onTurn` is called for the key later
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
    if (this.#open.size >= this.#maxOpen && !isUrgent) {
      this.#parked.add(key);
      return undefined;
    }
    const found = this.#leading.factsOfPod(wanted);
    if (!(found instanceof Promise)) return found;
    this.#open.set(id, { images, keys: new Set([key]) });
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
    for (const key of lookup.keys) this.#listener.onFacts(key, facts, lookup.images);
    // Every free place is offered: a parked pod may be gone meanwhile and not take its turn.
    const free = Math.max(0, this.#maxOpen - this.#open.size);
    for (const key of [...this.#parked].slice(0, free)) {
      this.#parked.delete(key);
      this.#listener.onTurn(key);
    }
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
