/**
 * The Lease during `archwright clean`: taken at once, even from a leader, and renewed until the end. A leader notices at its next renewal. A
 * leader that cannot renew stops within the Lease's duration; until then clean looks again for what it may write.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../async/clock.ts';
import { limited } from '../../async/wait.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import { ignoring, isCode, KubeError } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { microTime, recordOf } from '../../kube/election/lease-record.ts';
import { cleanHolder } from './lease-identity.ts';
import { paths } from '../../kube/api/paths.ts';
import type { CleanRun } from './run.ts';

/** Another process took the Lease: another `archwright clean`, or a controller after a long pause. */
export class LeaseLost extends Error {
  readonly code = 'lease-lost';
  readonly temporary = true;
  readonly where: string;
  constructor(where: string, holder?: string) {
    super(`${where} ${holder ? `was taken by ${holder}` : 'expired'} meanwhile; run archwright clean again`);
    this.name = 'LeaseLost';
    this.where = where;
  }
}

/** For a Lease without duration, or with the 1 s that a leader leaves when it ends. */
const usualDurationMs = 15_000;

/** Clocks of two machines differ by less: a record that was not renewed for so long has no leader. */
const maxClockSkewMs = 5 * 60_000;

/** For the last request, which is sent even if the program was told to stop. */
const endTimeoutMs = 5000;

/**
 * Takes the Lease.
 * @returns `undefined` in a dry run, and if there is no namespace for a Lease
 * @throws KubeError
 */
export async function takeLease(run: CleanRun, name: string): Promise<CleanLease | undefined> {
  const { namespace, client, dryRun, progress } = run.options;
  const where = `Lease ${namespace}/${name}`;
  const path = paths.leases(namespace, name);
  const identity = cleanHolder + randomBytes(4).toString('hex');
  const leader = leaderOf(await run.read<KubeObject>(path), client.serverNow());
  if (leader) progress(`${where} is held by ${leader.holder}`);
  if (dryRun) return undefined;

  let before: KubeObject | undefined;
  let held: KubeObject | undefined;
  // Not limited like other writes: the Lease must not wait for them.
  await run.change('lease', where, async (_, signal) => {
    before = await ignoring('not-found', client.get<KubeObject>(path, { signal }));
    const now = client.serverNow();
    held = await (before
      ? client.patch<KubeObject>(path, { type: 'merge', body: taken(before, identity, now) }, { signal })
      : client.create<KubeObject>(paths.leases(namespace), created(name, identity, now), { signal }));
  });
  // Either the namespace is gone, so there is no leader, or the report has the failure.
  if (!held) return undefined;
  const deposedMs = leaderOf(before, client.serverNow())?.durationMs ?? 0;
  return new CleanLease(run, { path, where, identity, held, deposedMs });
}

interface Held {
  readonly path: string;
  readonly where: string;
  readonly identity: string;
  readonly held: KubeObject;
  readonly deposedMs: number;
}

export class CleanLease {
  /**
   * For how long the last holder may still write, milliseconds; 0: there was none. An interrupted run may have deposed a
   * leader a moment ago, so it counts too.
   */
  readonly deposedMs: number;
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #lease: Held;
  readonly #durationMs: number;
  readonly #ended = new AbortController();
  readonly #lost = new AbortController();
  readonly #stop: AbortSignal;
  readonly #running: Promise<unknown>;
  #version: string | undefined;
  #renewedAt: number;

  constructor({ options, signal }: CleanRun, lease: Held) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#lease = lease;
    this.deposedMs = lease.deposedMs;
    this.#durationMs = durationOf(lease.held);
    this.#version = lease.held.metadata?.resourceVersion;
    this.#renewedAt = this.#clock.monotonic();
    this.#stop = AbortSignal.any([signal, this.#ended.signal, this.#lost.signal]);
    this.#running = Promise.all([this.#keepRenewing(), this.#watchExpiry()]);
  }

  /** Aborts with LeaseLost. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Stops renewing. `delete` tells controllers that the cluster is clean; `release` leaves the Lease without holder. */
  async end(how: 'delete' | 'release'): Promise<void> {
    this.#ended.abort(new Error('the Lease is no longer needed'));
    await this.#running;
    if (this.#lost.signal.aborted) return;
    try {
      await this.#giveUp(how, AbortSignal.timeout(endTimeoutMs));
    } catch (error) {
      // The Lease expires by itself.
      if (!(error instanceof KubeError)) throw error;
    }
  }

  async #keepRenewing(): Promise<void> {
    const { sleep, monotonic } = this.#clock;
    while (!this.#stop.aborted) {
      await sleep(this.#durationMs / 3, this.#stop).catch(() => undefined);
      if (this.#stop.aborted) return;
      const sentAt = monotonic();
      const renewing = limited(this.#durationMs / 6, this.#stop, (signal) => this.#renew(signal), sleep);
      if (await renewing.catch(() => false)) this.#renewedAt = sentAt;
    }
  }

  /** @returns whether it was renewed */
  async #renew(signal: AbortSignal): Promise<boolean> {
    const { path, where, identity } = this.#lease;
    const spec = { renewTime: microTime(this.#client.serverNow()) };
    const body = { metadata: { resourceVersion: this.#version }, spec };
    try {
      const renewed = await this.#client.patch<KubeObject>(path, { type: 'merge', body }, { signal });
      this.#version = renewed.metadata?.resourceVersion;
      return true;
    } catch (error) {
      if (!isCode(error, 'conflict')) throw error;
      const found = await this.#client.get<KubeObject>(path, { signal });
      const { holder } = recordOf(found);
      // Something else on it was changed, or a renewal without an answer was carried out.
      if (holder === identity) this.#version = found.metadata?.resourceVersion;
      else this.#lost.abort(new LeaseLost(where, holder));
      return false;
    }
  }

  /** Others may take the Lease if it was not renewed for its duration, whatever the reason. */
  async #watchExpiry(): Promise<void> {
    while (!this.#stop.aborted) {
      const leftMs = this.#renewedAt + this.#durationMs - this.#clock.monotonic();
      if (leftMs <= 0) this.#lost.abort(new LeaseLost(this.#lease.where));
      else await this.#clock.sleep(leftMs, this.#stop).catch(() => undefined);
    }
  }

  async #giveUp(how: 'delete' | 'release', signal: AbortSignal): Promise<void> {
    const { path, identity } = this.#lease;
    const lease = await this.#client.get<KubeObject>(path, { signal });
    if (recordOf(lease).holder !== identity) return;
    const { uid = '', resourceVersion = '' } = lease.metadata ?? {};
    const body = { metadata: { resourceVersion }, spec: { holderIdentity: '', leaseDurationSeconds: 1 } };
    if (how === 'delete') await this.#client.delete(path, { signal, uid, resourceVersion });
    else await this.#client.patch(path, { type: 'merge', body }, { signal });
  }
}

function leaderOf(
  lease: KubeObject | undefined,
  now: number,
): { readonly holder: string; readonly durationMs: number } | undefined {
  if (!lease) return undefined;
  const { holder, renewTime = '' } = recordOf(lease);
  const durationMs = durationOf(lease);
  const hasExpired = now - Date.parse(renewTime) > durationMs + maxClockSkewMs;
  return holder === '' || hasExpired ? undefined : { holder, durationMs };
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
