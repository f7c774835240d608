/** Tells who holds a taint back or has no toleration of it, and why: an event on the object, and a line in the log, again now and then. */
import type { KubeError } from '../../kube/api/errors.ts';
import type { ObjectReference } from '../../kube/events/events.ts';
import type { Taint } from '../../kube/api/objects.ts';
import { printable } from '../../names/printable.ts';
import type { RunningPod } from '../caches/caches.ts';
import type { Leading } from '../leadership/leading.ts';
import { daemonSetApiVersion } from '../scope/daemon-set.ts';
import type { BlockingDaemonSet } from './blockers.ts';

export type Blocker =
  | {
      readonly reason: 'pods';
      readonly taint: Taint;
      readonly pod: RunningPod;
      readonly why: KubeError['message'];
      /** Whether nodes have the taint already, so that nothing waits for the pod. */
      readonly established: boolean;
    }
  | { readonly reason: 'daemonsets'; readonly taint: Taint; readonly daemonSet: BlockingDaemonSet }
  | { readonly reason: 'no-other-node'; readonly taint: Taint; readonly pod: RunningPod };

export interface TaintEvents {
  /** Takes all there are now. */
  tell(holds: readonly Blocker[]): void;
}

/** The API server forgets events after an hour. */
const againMs = 30 * 60_000;
/** Beyond that the first ones say enough. */
const maxTold = 50;

export function createTaintEvents({ events, clock, log }: Leading): TaintEvents {
  let told = new Map<string, number>();
  return {
    tell: (holds) => {
      const now = clock.monotonic();
      const still = new Map<string, number>();
      for (const hold of holds.slice(0, maxTold)) {
        const about = objectOf(hold);
        const key = `${hold.reason} ${about.uid ?? ''} ${hold.taint.key} ${hold.taint.value ?? ''}`;
        const last = told.get(key);
        const isDue = last === undefined || now - last >= againMs;
        still.set(key, isDue ? now : last);
        if (!isDue) continue;
        const message = messageOf(hold);
        const isHeld = hold.reason !== 'pods' || !hold.established;
        events.record(about, {
          type: 'Warning',
          reason: isHeld ? 'TaintHeldBack' : 'TolerationRefused',
          message,
        });
        const { kind, namespace, name } = about;
        const what = isHeld ? 'a taint is held back' : 'a pod could not be given the toleration of a taint';
        log.warn({ kind, namespace, name, reason: hold.reason, message }, what);
      }
      told = still;
    },
  };
}

function objectOf(hold: Blocker): ObjectReference {
  if (hold.reason === 'daemonsets') {
    const { namespace, owner } = hold.daemonSet;
    return { apiVersion: owner.apiVersion, kind: owner.kind, namespace, name: owner.name, uid: owner.uid };
  }
  const { namespace, name, uid } = hold.pod;
  return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid };
}

function messageOf(hold: Blocker): string {
  const { key, value = '', effect } = hold.taint;
  const begin = `The nodes of ${value} do not get their taint ${key}=${value}:${effect}`;
  if (hold.reason === 'daemonsets') {
    const lacks = 'so that no new pod would start there';
    if (hold.daemonSet.owner.apiVersion !== daemonSetApiVersion)
      return `${begin}: this DaemonSet runs there and its pods do not tolerate it, ${lacks}. Add the toleration to its template.`;
    return (
      `${begin}: this DaemonSet runs there and its template does not tolerate it, ${lacks}. ` +
      'Restart it (kubectl rollout restart), then archwright adds the toleration, or add it yourself where archwright ' +
      'leaves the namespace alone.'
    );
  }
  if (hold.reason === 'pods') {
    const way = 'Delete it, or label it arch.example/placement=disabled.';
    const why = `this pod could not be given the toleration: ${printable(hold.why, 300)}`;
    if (!hold.established) return `${begin}: ${why}. ${way}`;
    return (
      `The nodes of ${value} have their taint ${key}=${value}:${effect}, but ${why}. It goes on running, but autoscalers and ` +
      `deschedulers may find it in the wrong place. ${way}`
    );
  }
  return (
    `${begin}: archwright leaves this pod alone, so its successor would not tolerate it, and no other node would take it. ` +
    "Give its workload's template the toleration, or leave an architecture without taint."
  );
}
