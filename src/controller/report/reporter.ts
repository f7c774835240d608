/**
 * Events about pods and on the workload that a person applied (the Deployment, not its ReplicaSet): once for
 * each cause, and again from time to time while it lasts.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { EventText, ObjectReference } from '../../kube/events/events.ts';
import type { OwnerReference } from '../../kube/api/objects.ts';
import { messageOf } from '../../names/printable.ts';
import type { RunningPod } from '../state/cached.ts';
import type { LeaderContext } from '../lead/feature.ts';
import { podReference, referenceOf, workloadOf } from '../pods/workload.ts';

/** The API server forgets events after an hour. */
const repeatMs = 30 * 60_000;
const maxRemembered = 5000;

type Leader = Pick<LeaderContext, 'client' | 'clock' | 'events' | 'log' | 'signal'>;

export class Reporter {
  readonly #leader: Leader;
  /** When a cause was reported last. */
  readonly #reportedAt = new BoundedMap<string, number>(maxRemembered);
  /** Keys: UIDs of the pods' owners. */
  readonly #workloads = new BoundedMap<string, Promise<ObjectReference>>(maxRemembered);

  constructor(leader: Leader) {
    this.#leader = leader;
  }

  /** Whether a cause was reported lately. */
  isRecent(cause: string, againMs = repeatMs): boolean {
    const last = this.#reportedAt.get(cause);
    return last !== undefined && this.#leader.clock.monotonic() - last < againMs;
  }

  /** Whether to report a cause now: it is new, or was reported long ago. Counts as reported then. */
  isDue(cause: string, againMs = repeatMs): boolean {
    if (this.isRecent(cause, againMs)) return false;
    this.#reportedAt.set(cause, this.#leader.clock.monotonic());
    return true;
  }

  /** The causes that are due. Forgets all others that are not there now: they are new when they return. */
  dueOf<T>(causes: ReadonlyMap<string, T>): readonly T[] {
    for (const cause of this.#reportedAt.keys()) if (!causes.has(cause)) this.#reportedAt.delete(cause);
    return [...causes].flatMap(([cause, value]) => (this.isDue(cause) ? [value] : []));
  }

  /**
   * Records an event on a pod, and on its workload. Never waits and never throws.
   * @param subject the same text for all pods of a workload that have this problem
   */
  record(
    { namespace, name, uid, owner }: Pick<RunningPod, 'namespace' | 'name' | 'uid' | 'owner'>,
    event: EventText,
    subject: string,
  ): void {
    const { events } = this.#leader;
    events.record(podReference({ namespace, name, uid }), event);
    if (owner === undefined || !this.isDue(JSON.stringify([owner.uid, event.reason, subject]))) return;
    const ofWorkload = { ...event, message: `Pod ${name}: ${event.message}` };
    void this.workloadOf(namespace, owner).then((workload) => events.record(workload, ofWorkload));
  }

  /** The workload of a pod's owner; the owner itself if it cannot be read, or is gone. */
  workloadOf(namespace: string, owner: OwnerReference): Promise<ObjectReference> {
    const known = this.#workloads.get(owner.uid);
    if (known) return known;
    const itself = referenceOf(namespace, owner);
    const reading = workloadOf(namespace, owner, this.#leader).then(
      (workload) => workload?.top ?? itself,
      (error: unknown) => {
        this.#workloads.delete(owner.uid);
        const about = { namespace, owner: owner.name, error: messageOf(error) };
        this.#leader.log.debug(about, 'the owner of a pod cannot be read');
        return itself;
      },
    );
    this.#workloads.set(owner.uid, reading);
    return reading;
  }
}
