/** How much of pods and their requests can run on an architecture, and what blocks the rest. */
import { causes, mainCause, type State } from '../verdict.ts';
import { requestsOf, type JudgedPod } from '../rows.ts';

export const states: readonly State[] = ['ready', ...causes];

export const stateLabels: Readonly<Record<State, string>> = {
  ready: 'can run',
  image: 'image lacks it',
  broken: 'image is broken',
  unknown: 'image is unknown',
  selector: 'node selector',
  affinity: 'node affinity',
};

export interface Share {
  readonly pods: number;
  /** Cores. */
  readonly cpu: number;
  /** Bytes. */
  readonly memory: number;
}

export type Measure = keyof Share;

export function shareOf(pods: readonly JudgedPod[]): Share {
  return { pods: pods.length, ...requestsOf(pods) };
}

/** Each pod counts once, for its main cause. */
export function sharesByState(pods: readonly JudgedPod[]): Readonly<Record<State, Share>> {
  const groups = Map.groupBy(pods, (pod) => mainCause(pod) ?? 'ready');
  return Object.fromEntries(states.map((state) => [state, shareOf(groups.get(state) ?? [])])) as Record<
    State,
    Share
  >;
}

/** @returns between 0 and 1; 1 for a part of nothing */
export function ratio(part: number, whole: number): number {
  return whole === 0 ? 1 : part / whole;
}
