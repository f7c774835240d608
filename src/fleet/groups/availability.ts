/**
 * Whether agents answer at all. While none does, an image stays unknown however long its pod waits, so no pod
 * must wait for one. A short outage does not count: pods that are created meanwhile are gated, and placed
 * when an agent answers again.
 */
import type { Clock } from '../../async/clock.ts';
import type { Log } from '../../telemetry/log.ts';

/** Agents restart within seconds, first ones start within twenty. Unplaced pods are worse than a wait. */
const patienceMs = 30_000;

export interface AvailabilityOptions {
  readonly clock: Clock;
  readonly log: Log;
}

export class Availability {
  readonly #options: AvailabilityOptions;
  /** Set while no agent answers: ends the wait for the first answer. */
  #cancel: (() => void) | undefined;
  #isAvailable = true;
  #known = 0;

  constructor(options: AvailabilityOptions) {
    this.#options = options;
    this.#wait(0);
  }

  /** False if no agent has answered for some time. */
  get isAvailable(): boolean {
    return this.#isAvailable;
  }

  /** @param known agents that discovery found @param answering those of them that answer */
  note(known: number, answering: number): void {
    if (answering === 0) return this.#wait(known);
    this.close();
    if (this.#isAvailable) return;
    this.#isAvailable = true;
    this.#options.log.info({ agents: answering }, 'agents answer again: unknown images gate pods');
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #wait(known: number): void {
    const { clock, log } = this.#options;
    this.#known = known;
    // A timer that has run stays set: it is started again only after an answer.
    this.#cancel ??= clock.timer(patienceMs, () => {
      this.#isAvailable = false;
      log.warn(
        { agents: this.#known, seconds: patienceMs / 1000 },
        'no agent answers: images that are not in memory are unknown, and gate no pods; see archwright status',
      );
    });
  }
}
