/**
 * Leaving: takes what archwright put into a cluster out of it again, and nothing else. In this order, because each step
 * makes the next one final:
 *
 * 1. `hold.ts`: takes the Lease, from a leader too, so that controllers stop writing and webhooks stop gating.
 * 2. `webhooks.ts`: removes the webhook configuration; from then on no pod gets a gate.
 * 3. `gates.ts`: removes our gate from every pod, and looks again until none comes any more: an API server may call the
 *    webhook a second or two longer, and a deposed leader may finish what it had begun.
 * 4. Our taints from nodes (`taints.ts`), our finalizers from custom resources (`finalizers.ts`), then what the controller
 *    created (`own-objects.ts`).
 * 5. `restart-pods.ts`, on request: evicts the pods that carry our tolerations.
 * 6. Deletes the Lease. Controllers that saw clean hold it take no new one (`../candidacy.ts`).
 *
 * Each step finds out what is left, so a run that was interrupted is continued by the next one. What cannot be removed is
 * told at the end, and does not keep the rest from being removed. Where anything failed, the Lease is released instead of
 * deleted: running controllers take their work up again, rather than leave pods behind gates that nobody opens.
 */
import type { Configuration } from '../../policy/configuration/configuration.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import type { RateLimiter } from '../../async/rate-limiter.ts';
import type { Clock } from '../../async/clock.ts';
import { createCleaning, type Cleaning, type StepReport } from './steps.ts';
import { removeFinalizers } from './finalizers.ts';
import { removeGates } from './gates.ts';
import { takeLease, type CleanLease } from './lease.ts';
import { removeOwnObjects } from './own-objects.ts';
import { restartPods } from './restart-pods.ts';
import { cleanTaints } from './taints.ts';
import { removeWebhooks, webhooksStep } from './webhooks.ts';

export interface CleanOptions {
  readonly client: KubeClient;
  /** For everything that changes something. */
  readonly limiter: RateLimiter;
  /** Namespace that archwright runs or ran in. */
  readonly namespace: string;
  readonly configuration: Configuration;
  /** Only says what it would do. */
  readonly dryRun: boolean;
  readonly restartPods: boolean;
  /** Takes a line for the person who waits. */
  readonly progress: (line: string) => void;
  /** Aborts when the program is to stop. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Waits; injected by tests. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface CleanReport {
  readonly dryRun: boolean;
  /** Whether nothing is left. */
  readonly complete: boolean;
  readonly steps: readonly StepReport[];
}

/** API servers follow a changed webhook configuration within a second or two (measured: 1 to 2 s). */
const staleWebhookMs = 5000;

/** Pause between looks for new gates. */
const lookAgainMs = 1000;

/** Something else gates pods when they still come so long after the configuration is gone. */
const patienceMs = 60_000;

/**
 * Cleans a cluster.
 * @returns what was found and done, step by step
 * @throws the signal's reason when it aborts, and LeaseLost when somebody else takes the Lease meanwhile
 */
export async function clean(options: CleanOptions): Promise<CleanReport> {
  const cleaning = createCleaning(options);
  const hold = await cleaning.step('lease', () => takeLease(cleaning, options.configuration.leaseName));
  const inside = cleaning.within(hold?.signal);
  let complete = false;
  try {
    await closeTheDoor(inside, options, hold);
    await inside.step('taints', () => cleanTaints(inside, options.configuration, options.limiter));
    await inside.step('custom resources', () => removeFinalizers(inside));
    await inside.step('own objects', () => removeOwnObjects(inside, options.configuration));
    if (options.restartPods)
      await inside.step('restarted pods', () => restartPods(inside, options.configuration));
    complete = cleaning.report().every(({ failures }) => failures.length === 0);
  } finally {
    await hold?.end(complete ? 'delete' : 'release');
  }
  const steps = cleaning.report();
  return { dryRun: options.dryRun, complete: steps.every(({ failures }) => failures.length === 0), steps };
}

/** Webhook configuration and gates, until no gate comes any more. */
async function closeTheDoor(
  cleaning: Cleaning,
  { configuration, clock, sleep, dryRun }: CleanOptions,
  hold: CleanLease | undefined,
): Promise<void> {
  const { signal } = cleaning;
  const began = clock.monotonic();
  const quietAt = began + Math.max(staleWebhookMs, hold?.deposedMs ?? 0);
  let isWaiting = false;
  for (;;) {
    await cleaning.step(webhooksStep, () => removeWebhooks(cleaning, configuration));
    const removed = await cleaning.step('gates', () => removeGates(cleaning));
    const now = clock.monotonic();
    if (dryRun || removed === undefined || (removed === 0 && now >= quietAt)) return;
    if (now >= quietAt + patienceMs) {
      cleaning.fail('gates', 'pods', 'new pods still get our gate: is another archwright running?');
      return;
    }
    if (removed === 0 && !isWaiting) {
      const seconds = Math.ceil((quietAt - now) / 1000);
      cleaning.progress(`looking for late gates for another ${seconds} s`);
      isWaiting = true;
    }
    await sleep(lookAgainMs, signal);
  }
}
