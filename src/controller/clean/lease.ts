/**
 * The Lease while cleaning: taken at once, even from a leader, and renewed until the end. A leader sees at its next renewal
 * that it leads no more; one that could not look stops by itself within the Lease's duration, and until then what it may
 * still write is looked for again.
 */
import { randomBytes } from 'node:crypto';
import { KubeError } from '../../kube/api/errors.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import { microTime, recordOf } from '../../kube/election/lease-record.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { limited } from '../../async/wait.ts';
import type { Cleaning } from './steps.ts';
import { cleanHolder } from './lease-identity.ts';
import { paths } from '../../kube/api/paths.ts';

/** Somebody else took the Lease: another `archwright clean`, or a controller after a long pause. */
export class LeaseLost extends Error {
  readonly code = 'lease-lost';
  readonly temporary = true;
  readonly where: string;
  constructor(where: string, holder: string) {
    super(`${where} was taken by ${holder || 'nobody'} meanwhile; run archwright clean again`);
    this.name = 'LeaseLost';
    this.where = where;
  }
}

export interface CleanLease {
  /** Aborts with LeaseLost. */
  readonly signal: AbortSignal;
  /**
   * How long whoever held it may still write, milliseconds; 0 where nobody did. An earlier run that did not end may have
   * deposed a leader a moment ago, so it counts too.
   */
  readonly deposedMs: number;
  /** Stops renewing; deletes the Lease, so that controllers see that the cluster is clean, or leaves it without holder. */
  end(how: 'delete' | 'release'): Promise<void>;
}

/** For a Lease that has none, or the 1 that a leader leaves when it ends, which is too short to hold anything. */
const usualDurationMs = 15_000;

/** A record that nobody renewed for so long has no leader, however far the clocks of two machines are apart. */
const clocksApartMs = 5 * 60_000;

/** For the last request, which is sent after the program was told to stop too. */
const endTimeoutMs = 5000;

/**
 * Takes the Lease.
 * @returns `undefined` in a dry run, and where there is no namespace to hold one in
 * @throws KubeError where it cannot be had
 */
export async function takeLease(cleaning: Cleaning, name: string): Promise<CleanLease | undefined> {
  const { namespace, client } = cleaning;
  const where = `Lease ${namespace}/${name}`;
  const path = paths.leases(namespace, name);
  const identity = cleanHolder + randomBytes(4).toString('hex');
  const found = await cleaning.read<KubeObject>(path);
  const leader = leaderOf(found, client.serverNow());
  if (leader) cleaning.progress(`${where} is held by ${leader.holder}`);
  if (cleaning.dryRun) return undefined;

  let before: KubeObject | undefined;
  let held: KubeObject | undefined;
  await cleaning.change('lease', where, async (_, signal) => {
    before = await client.get<KubeObject>(path, { signal }).catch(absent);
    held = await (before
      ? client.patch<KubeObject>(
          path,
          { type: 'merge', body: taken(before, identity, client.serverNow()) },
          { signal },
        )
      : client.create<KubeObject>(paths.leases(namespace), created(name, identity, client.serverNow()), {
          signal,
        }));
  });
  // There is nobody to agree with: either the namespace is gone, or the report says what is wrong.
  if (!held) return undefined;
  return keep(cleaning, {
    path,
    where,
    identity,
    held,
    deposedMs: leaderOf(before, client.serverNow())?.staysMs ?? 0,
  });
}

/** Renews until it is ended. */
function keep(
  { client, clock, sleep, signal }: Cleaning,
  lease: {
    readonly path: string;
    readonly where: string;
    readonly identity: string;
    readonly held: KubeObject;
    readonly deposedMs: number;
  },
): CleanLease {
  const { path, where, identity } = lease;
  const ended = new AbortController();
  const lost = new AbortController();
  const durationMs = durationOf(lease.held);
  let version = lease.held.metadata?.resourceVersion;

  /** @returns whether it was renewed */
  async function renew(asker: AbortSignal): Promise<boolean> {
    const body = {
      metadata: { resourceVersion: version },
      spec: { renewTime: microTime(client.serverNow()) },
    };
    try {
      const renewed = await client.patch<KubeObject>(path, { type: 'merge', body }, { signal: asker });
      version = renewed.metadata?.resourceVersion;
      return true;
    } catch (error) {
      if (!(error instanceof KubeError) || error.code !== 'conflict') throw error;
      const found = await client.get<KubeObject>(path, { signal: asker });
      // Somebody put a label on it, or a renewal without an answer was carried out.
      if (recordOf(found).holder === identity) version = found.metadata?.resourceVersion;
      else lost.abort(new LeaseLost(where, recordOf(found).holder));
      return false;
    }
  }

  let renewedAt = clock.monotonic();
  const stop = AbortSignal.any([signal, ended.signal, lost.signal]);

  async function keepRenewing(): Promise<void> {
    while (!stop.aborted) {
      await sleep(durationMs / 3, stop).catch(() => undefined);
      if (stop.aborted) return;
      const sentAt = clock.monotonic();
      const isRenewed = await limited(durationMs / 6, stop, renew, sleep).catch(() => false);
      if (isRenewed) renewedAt = sentAt;
    }
  }

  /** Others may take the Lease when it was silent for its duration, whatever the reason. */
  async function watchEnd(): Promise<void> {
    while (!stop.aborted) {
      const leftMs = renewedAt + durationMs - clock.monotonic();
      if (leftMs <= 0) lost.abort(new LeaseLost(where, ''));
      else await sleep(leftMs, stop).catch(() => undefined);
    }
  }

  const running = Promise.all([keepRenewing(), watchEnd()]);

  return {
    signal: lost.signal,
    deposedMs: lease.deposedMs,
    end: async (how) => {
      ended.abort(new Error('the Lease is not needed any more'));
      await running;
      if (lost.signal.aborted) return;
      await letGo(client, path, identity, how);
    },
  };
}

/** At the very end, and even if the program was told to stop; what fails here is repaired by the Lease's expiry. */
async function letGo(
  client: KubeClient,
  path: string,
  identity: string,
  how: 'delete' | 'release',
): Promise<void> {
  const signal = AbortSignal.timeout(endTimeoutMs);
  try {
    const lease = await client.get<KubeObject>(path, { signal });
    if (recordOf(lease).holder !== identity) return;
    const { uid = '', resourceVersion = '' } = lease.metadata ?? {};
    if (how === 'delete') await client.delete(path, { signal, uid, resourceVersion });
    else {
      const body = { metadata: { resourceVersion }, spec: { holderIdentity: '', leaseDurationSeconds: 1 } };
      await client.patch(path, { type: 'merge', body }, { signal });
    }
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
  }
}

function leaderOf(
  lease: KubeObject | undefined,
  now: number,
): { readonly holder: string; readonly staysMs: number } | undefined {
  if (!lease) return undefined;
  const { holder, renewTime = '' } = recordOf(lease);
  const staysMs = durationOf(lease);
  if (holder === '' || now - Date.parse(renewTime) > staysMs + clocksApartMs) return undefined;
  return { holder, staysMs };
}

function durationOf(lease: KubeObject): number {
  const { durationMs } = recordOf(lease);
  return durationMs > 1000 ? durationMs : usualDurationMs;
}

function taken(lease: KubeObject, identity: string, now: number): object {
  const spec = specOf(identity, now, durationOf(lease), recordOf(lease).transitions + 1);
  return { metadata: { resourceVersion: lease.metadata?.resourceVersion }, spec };
}

function created(name: string, identity: string, now: number): object {
  const spec = specOf(identity, now, usualDurationMs, 0);
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec };
}

function specOf(holderIdentity: string, now: number, durationMs: number, leaseTransitions: number): object {
  const at = microTime(now);
  const leaseDurationSeconds = Math.ceil(durationMs / 1000);
  return { holderIdentity, acquireTime: at, renewTime: at, leaseDurationSeconds, leaseTransitions };
}

function absent(error: unknown): undefined {
  if (error instanceof KubeError && error.code === 'not-found') return undefined;
  throw error;
}
