/**
 * Questions about images for many pods at once: pods with the same images, pull secrets and service account wait for one
 * answer, and no worker waits at all. How many questions are open is bounded; more of them wait for their turn.
 */
import type { Clock } from '../../async/clock.ts';
import type { FactsByImage, FactsOfPod, FactsWanted } from '../../cluster/facts-of-pod.ts';
import type { Log } from '../../telemetry/log.ts';

export interface GateLookups {
  /**
   * @returns the facts, where they are known; else `undefined`: the key hears by `answered`, or by `turn` when a question
   * can be asked for it
   * @param urgent whether the question takes no turn
   */
  ask(key: string, wanted: FactsWanted, urgent?: boolean): FactsByImage | undefined;
  /** Open questions and keys that wait. */
  readonly open: number;
  readonly parked: number;
  stop(): void;
}

export interface GateLookupsOptions {
  readonly factsOfPod: FactsOfPod;
  /** `images`: the signature of what was asked for, which need not be what the pod wants by now. */
  readonly answered: (key: string, facts: FactsByImage, images: string) => void;
  readonly turn: (key: string) => void;
  readonly log: Log;
  readonly startTimer: Clock['timer'];
  readonly maxOpen?: number;
}

/** Each may be a request to an agent; those that hang must not stand in the way of those that do not. */
const defaultMaxOpen = 512;
/** Facts come within the time that was asked for; a defect there must not hold pods. */
const graceMs = 2000;

const noFacts: FactsByImage = new Map();

/** What an answer depends on. */
export function signatureOf({ uses, namespace, pullSecrets, serviceAccount }: FactsWanted): string {
  return JSON.stringify([
    namespace,
    pullSecrets.names,
    serviceAccount?.name,
    uses.map(({ image, pullPolicy }) => [image, pullPolicy]),
  ]);
}

/** Makes an asker without questions. */
export function createGateLookups(options: GateLookupsOptions): GateLookups {
  const { factsOfPod, answered, turn, log, startTimer, maxOpen = defaultMaxOpen } = options;
  /** By question, the keys that wait for its answer. */
  const open = new Map<string, { readonly images: string; readonly keys: Set<string> }>();
  const parked = new Set<string>();
  let stopped = false;

  function settle(question: string, facts: FactsByImage): void {
    const asked = open.get(question);
    if (asked === undefined || stopped) return;
    open.delete(question);
    for (const key of asked.keys) answered(key, facts, asked.images);
    // Whoever has a turn may have gone meanwhile, so each place that is free by now is given away.
    const free = [...parked].slice(0, Math.max(0, maxOpen - open.size));
    for (const key of free) {
      parked.delete(key);
      turn(key);
    }
  }

  async function follow(question: string, promise: Promise<FactsByImage>, budgetMs: number): Promise<void> {
    const cancel = startTimer(budgetMs + graceMs, () => settle(question, noFacts));
    try {
      settle(question, await promise);
    } catch (error) {
      log.error({ err: error }, 'facts of a gated pod could not be had');
      settle(question, noFacts);
    } finally {
      cancel();
    }
  }

  return {
    ask: (key, wanted, urgent = false) => {
      // A short question does not wait for the end of a long one.
      const images = signatureOf(wanted);
      const question = `${wanted.budgetMs} ${images}`;
      const waiting = open.get(question);
      if (waiting) {
        waiting.keys.add(key);
        return undefined;
      }
      if (open.size >= maxOpen && !urgent) {
        parked.add(key);
        return undefined;
      }
      const found = factsOfPod(wanted);
      if (!(found instanceof Promise)) return found;
      open.set(question, { images, keys: new Set([key]) });
      void follow(question, found, wanted.budgetMs);
      return undefined;
    },
    get open() {
      return open.size;
    },
    get parked() {
      return parked.size;
    },
    stop: () => {
      stopped = true;
      open.clear();
      parked.clear();
    },
  };
}
