/** Events of rollouts: each new phase or step, and once for each step that something holds it. */
import type { KubeObject } from '../../../kube/api/objects.ts';
import { keyOf } from '../../../kube/queue.ts';
import { resourceApiVersion } from '../../../policy/resources/placement.ts';
import { rolloutKind } from '../../../policy/resources/rollout.ts';
import type { LeaderContext } from '../../lead/leader-context.ts';
import type { Verdict } from './health.ts';
import type { RolloutMeters } from './metrics.ts';
import type { Phase, Progress } from './progress.ts';

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

/** The last leader may have stopped between the status and the event. Two events are better than none. */
const unreportedMs = 5 * 60_000;

function isFresh({ phase, endedAt = 0 }: Progress, now: number): boolean {
  return phase === 'RolledBack' && now - endedAt < unreportedMs;
}

interface Held {
  /** `undefined`: it is not held. */
  readonly since?: number | undefined;
  readonly isTold: boolean;
}

interface Look {
  readonly verdict: Verdict | undefined;
  /** Whether this leader looks at the rollout for the first time. */
  readonly isFirstLook: boolean;
  readonly now: number;
}

export class RolloutReports {
  readonly #leader: Pick<LeaderContext, 'events' | 'log'>;
  readonly #meters: RolloutMeters;
  /** Since when the step is held, and whether an event said so, by key of the rollout. */
  readonly #held = new Map<string, Held & { readonly step: string }>();

  constructor(leader: Pick<LeaderContext, 'events' | 'log'>, meters: RolloutMeters) {
    this.#leader = leader;
    this.#meters = meters;
  }

  forget(key: string): void {
    this.#held.delete(key);
  }

  report(object: KubeObject, before: Progress | undefined, progress: Progress, look: Look): void {
    const { verdict, isFirstLook, now } = look;
    const { phase, step, message } = progress;
    const isNew = phase !== before?.phase || step !== before.step;
    const isNews = before !== undefined || phase === 'Waiting';
    const isRolledBack = phase === 'RolledBack';
    if (isNews && (isNew || (isFirstLook && isFresh(progress, now)))) {
      if (isRolledBack && verdict) this.#meters.rolledBack(verdict.reason);
      this.#record(object, isRolledBack ? 'Warning' : 'Normal', eventReasons[phase], message);
    }
    this.#reportHeld(object, progress, now);
  }

  /** Once for each step. */
  #reportHeld(object: KubeObject, { attempt, step, held, message }: Progress, now: number): void {
    const key = keyOf(object);
    const id = `${attempt}/${step}`;
    const known = this.#held.get(key);
    const before: Held = known?.step === id ? known : { isTold: false };
    const since = held === undefined ? undefined : (before.since ?? now);
    const isNews = since !== undefined && !before.isTold && now - since >= heldMs;
    this.#held.set(key, { step: id, since, isTold: before.isTold || isNews });
    if (isNews) this.#record(object, 'Normal', 'RolloutHeld', message);
  }

  #record(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const { events, log } = this.#leader;
    const { name = '', namespace, uid } = object.metadata ?? {};
    const about = { apiVersion: resourceApiVersion, kind: rolloutKind, namespace, name, uid };
    events.record(about, { type, reason, message });
    log.info({ namespace, rollout: name, reason, message }, 'a rollout progresses');
  }
}
