/** Metrics and events of rollouts: each new phase or step, and once for each step that something holds it. */
import type { KubeObject } from '../../../kube/api/objects.ts';
import { keyOf } from '../../../kube/queue.ts';
import { resourceApiVersion } from '../../../policy/resources/placement.ts';
import { rolloutKind } from '../../../policy/resources/rollout.ts';
import { counter, counts, gauge, itemCounts } from '../../../telemetry/metrics.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { rollbackReasons, type RollbackVerdict } from './health.ts';
import { phases, type Phase, type Progress } from './progress.ts';
import { readProgress } from './status.ts';

export const rolloutsByPhase = gauge('archwright_rollouts', 'ArchitectureRollouts, by phase.', {
  phase: phases,
});

export const rollbacks = counter(
  'archwright_rollout_rollbacks_total',
  'Rollbacks: pods were less healthy than on other architectures, or an image cannot run there.',
  { reason: rollbackReasons },
);

/** A step that takes longer is worth an event. */
const heldMs = 60_000;

const eventReasons = {
  Waiting: 'RolloutWaiting',
  Progressing: 'RolloutProgressing',
  Paused: 'RolloutPaused',
  RolledBack: 'RolloutRolledBack',
  Aborted: 'RolloutAborted',
  Complete: 'RolloutComplete',
} as const satisfies Readonly<Record<Phase, string>>;

/** A step of a rollout. */
interface Held {
  readonly step: string;
  /** `undefined`: nothing holds it. */
  since: number | undefined;
  /** Whether an event said so. */
  isTold: boolean;
}

type Leader = Pick<LeaderContext, 'caches' | 'configuration' | 'events' | 'log' | 'metrics'>;

export class RolloutReports {
  readonly #leader: Leader;
  readonly #rolledBack: (reason: RollbackVerdict['reason']) => void;
  /** Keys: those of rollouts. */
  readonly #held = new Map<string, Held>();

  constructor(leader: Leader) {
    const { metrics, caches, configuration } = leader;
    this.#leader = leader;
    this.#rolledBack = counts(metrics, rollbacks, 'reason', rollbackReasons);
    const show = itemCounts(metrics, rolloutsByPhase);
    metrics.beforeScrape(() => {
      const followed = configuration().rollouts ? [...caches.rollouts.values()] : [];
      const progresses = followed.flatMap((object) => readProgress(object) ?? []);
      show(progresses, ({ phase }) => [{ phase }]);
    });
  }

  forget(key: string): void {
    this.#held.delete(key);
  }

  report(
    object: KubeObject,
    before: Progress | undefined,
    progress: Progress,
    verdict: RollbackVerdict | undefined,
    now: number,
  ): void {
    const { phase, step, message } = progress;
    const isNew = phase !== before?.phase || step !== before.step;
    if (isNew && (before !== undefined || phase === 'Waiting')) {
      const isRolledBack = phase === 'RolledBack';
      if (isRolledBack && verdict) this.#rolledBack(verdict.reason);
      this.#record(object, isRolledBack ? 'Warning' : 'Normal', eventReasons[phase], message);
    }
    this.#reportHeld(object, progress, now);
  }

  /** Once for each step. */
  #reportHeld(object: KubeObject, { attempt, step, held, message }: Progress, now: number): void {
    const key = keyOf(object);
    const id = `${attempt}/${step}`;
    const known = this.#held.get(key);
    const hold = known?.step === id ? known : { step: id, since: undefined, isTold: false };
    this.#held.set(key, hold);
    hold.since = held === undefined ? undefined : (hold.since ?? now);
    if (hold.since === undefined || hold.isTold || now - hold.since < heldMs) return;
    hold.isTold = true;
    this.#record(object, 'Normal', 'RolloutHeld', message);
  }

  #record(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { events, log } = this.#leader;
    const { name = '', namespace, uid } = object.metadata ?? {};
    const about = { apiVersion: resourceApiVersion, kind: rolloutKind, namespace, name, uid };
    events.record(about, { type, reason, message });
    log.info({ namespace, rollout: name, reason, message }, 'a rollout progresses');
  }
}
