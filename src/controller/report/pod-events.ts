/**
 * Events on a pod and on the workload that a person applied (the Deployment, not its ReplicaSet). All pods of
 * a workload with the same problem share one event there.
 */
import { BoundedMap } from '../../async/bounded-map.ts';
import type { EventText, ObjectReference } from '../../kube/events/event.ts';
import type { OwnerReference } from '../../kube/api/objects.ts';
import { messageOf } from '../../names/printable.ts';
import type { RunningPod } from '../state/cached.ts';
import type { LeaderContext } from '../lead/leader-context.ts';
import { repeatMs } from './repeated-reports.ts';
import { podReference, referenceOf, workloadOf } from '../pods/workload.ts';

const maxRemembered = 5000;

export class PodEvents {
  readonly #leading: Pick<LeaderContext, 'client' | 'clock' | 'events' | 'log' | 'signal'>;
  /** When a workload had an event, by the UID of the pods' owner, reason and subject. */
  readonly #reportedAt = new BoundedMap<string, number>(maxRemembered);
  /** By the UID of the pods' owner. */
  readonly #workloads = new BoundedMap<string, Promise<ObjectReference>>(maxRemembered);

  constructor(leading: Pick<LeaderContext, 'client' | 'clock' | 'events' | 'log' | 'signal'>) {
    this.#leading = leading;
  }

  /**
   * Records an event on a pod and on its workload. Never waits and never throws.
   * @param subject the same text for all pods of a workload that have this problem
   */
  record(
    { namespace, name, uid, owner }: Pick<RunningPod, 'namespace' | 'name' | 'uid' | 'owner'>,
    event: EventText,
    subject: string,
  ): void {
    const { events } = this.#leading;
    events.record(podReference({ namespace, name, uid }), event);
    if (owner === undefined || !this.#isNew(owner, event, subject)) return;
    const ofWorkload = { ...event, message: `Pod ${name}: ${event.message}` };
    void this.#workloadOf(namespace, owner).then((workload) => events.record(workload, ofWorkload));
  }

  #isNew({ uid }: OwnerReference, { reason }: EventText, subject: string): boolean {
    const now = this.#leading.clock.monotonic();
    const key = JSON.stringify([uid, reason, subject]);
    const last = this.#reportedAt.get(key);
    if (last !== undefined && now - last < repeatMs) return false;
    this.#reportedAt.set(key, now);
    return true;
  }

  #workloadOf(namespace: string, owner: OwnerReference): Promise<ObjectReference> {
    const known = this.#workloads.get(owner.uid);
    if (known) return known;
    const reading = this.#read(namespace, owner);
    this.#workloads.set(owner.uid, reading);
    return reading;
  }

  /** The workload; the pod's owner if that cannot be read, or is gone. */
  async #read(namespace: string, owner: OwnerReference): Promise<ObjectReference> {
    const { client, signal, log } = this.#leading;
    try {
      const workload = await workloadOf(namespace, owner, { client, signal });
      return workload?.top ?? referenceOf(namespace, owner);
    } catch (error) {
      this.#workloads.delete(owner.uid);
      log.debug(
        { namespace, owner: owner.name, error: messageOf(error) },
        'the owner of a pod cannot be read',
      );
      return referenceOf(namespace, owner);
    }
  }
}
