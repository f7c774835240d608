/**
 * How long an answer usually takes: a running estimate of the 95th percentile, after which a second agent is asked in
 * addition to the first.
 */
export interface ResponseTime {
  /** Adds the duration of an answer, milliseconds. */
  observe(durationMs: number): void;
  /** Milliseconds without an answer after which the next agent is asked too. */
  hedgeAfterMs(): number;
}

export interface ResponseTimeLimits {
  /** Never sooner: a cold image costs its agent a few round trips to a registry, and a second agent would repeat them. */
  readonly floorMs: number;
  /** Never later: a dead agent must leave the next one time to answer. */
  readonly capMs: number;
}

export const defaultResponseTimeLimits: ResponseTimeLimits = { floorMs: 300, capMs: 3000 };

const quantile = 0.95;
/** How far one answer moves the estimate; a change of the usual time is followed within some dozens of answers. */
const step = 0.2;

/**
 * Makes an estimate. It follows the quantile by stochastic approximation (Robbins and Monro): an answer slower than the estimate raises
 * it by 0.95 steps, a faster one lowers it by 0.05, so that it rests where one in twenty is slower.
 */
export function createResponseTime(limits: ResponseTimeLimits = defaultResponseTimeLimits): ResponseTime {
  const within = (value: number) => Math.min(limits.capMs, Math.max(limits.floorMs, value));
  let estimate = within(1000);
  return {
    observe: (durationMs) => {
      const direction = durationMs > estimate ? quantile : quantile - 1;
      estimate = within(estimate * (1 + step * direction));
    },
    hedgeAfterMs: () => estimate,
  };
}
