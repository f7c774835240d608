/**
 * The Lease during `archwright clean`: taken at once, even from a leader, and renewed until the end. A leader
 * stops at its next renewal, or within the Lease's duration; until then, clean looks for its writes again.
 */
import { randomBytes } from 'node:crypto';
import { limited } from '../../async/wait.ts';
import type { KubeClient } from '../../kube/api/client.ts';
import { ignoring, isCode, KubeError } from '../../kube/api/errors.ts';
import type { KubeObject } from '../../kube/api/objects.ts';
import { paths } from '../../kube/api/paths.ts';
import { microTime, recordOf } from '../../kube/election/lease-lock.ts';
import type { Page } from '../../kube/api/pages.ts';
import type { CleanRun } from './run.ts';

/** Prefix of the holder's identity. Names of pods contain no slash. */
const cleanHolder = 'archwright-clean/';

export function isCleanHolder(holder: string | undefined): boolean {
  return holder?.startsWith(cleanHolder) === true;
}

/** Another process took the Lease: another `archwright clean`, or a controller after a long pause. */
class LeaseLost extends Error {
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

/** For the last request, which is sent even after a stop. */
const endTimeoutMs = 5000;

/** More installations than a cluster has. */
const maxNamespaces = 10;

/**
 * The namespaces that have a Lease of this name: for a user outside of the cluster without a namespace.
 * @returns `undefined`: Leases may not be listed
 * @throws KubeError for any other reason
 */
export async function namespacesOfLease(
  client: KubeClient,
  leaseName: string,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const query = { fieldSelector: `metadata.name=${leaseName}`, limit: maxNamespaces };
  const page = await ignoring('forbidden', client.get<Page<KubeObject>>(paths.leases(), { signal, query }));
  return page && (page.items ?? []).flatMap(({ metadata }) => metadata?.namespace ?? []);
}

/** @returns `undefined` in a dry run, and if there is no namespace for a Lease */
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
    const metadata = before ? { resourceVersion: before.metadata?.resourceVersion } : { name };
    const body = { metadata, spec: takenSpec(before, identity, client.serverNow()) };
    held = await (before
      ? client.patch<KubeObject>(path, { type: 'merge', body }, { signal })
      : client.create<KubeObject>(
          paths.leases(namespace),
          { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...body },
          { signal },
        ));
  });
  // Either the namespace is gone, so there is no leader, or the report has the failure.
  if (!held) return undefined;
  const deposedMs = leaderOf(before, client.serverNow())?.durationMs ?? 0;
  return new CleanLease(run, { path, where, identity }, held, deposedMs);
}

interface Lease {
  readonly path: string;
  readonly where: string;
  readonly identity: string;
}

class CleanLease {
  /**
   * For how long the last holder may still write, milliseconds; 0: there was none. An interrupted run counts
   * too: it may have deposed a leader a moment ago.
   */
  readonly deposedMs: number;
  readonly #options: Pick<CleanRun['options'], 'client' | 'clock'>;
  readonly #lease: Lease;
  readonly #durationMs: number;
  readonly #ended = new AbortController();
  readonly #lost = new AbortController();
  readonly #stop: AbortSignal;
  readonly #running: Promise<unknown>;
  #version: string | undefined;
  #renewedAt: number;

  constructor({ options, signal }: CleanRun, lease: Lease, held: KubeObject, deposedMs: number) {
    this.#options = options;
    this.#lease = lease;
    this.deposedMs = deposedMs;
    this.#durationMs = durationOf(held);
    this.#version = held.metadata?.resourceVersion;
    this.#renewedAt = options.clock.monotonic();
    this.#stop = AbortSignal.any([signal, this.#ended.signal, this.#lost.signal]);
    this.#running = Promise.all([this.#keepRenewing(), this.#watchExpiry()]);
  }

  /** Aborts with LeaseLost. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Stops renewing. `delete`: tells controllers that the cluster is clean; `release`: clears the holder. */
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
    const { sleep, monotonic } = this.#options.clock;
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
    const { client } = this.#options;
    const { path, where, identity } = this.#lease;
    const spec = { renewTime: microTime(client.serverNow()) };
    const body = { metadata: { resourceVersion: this.#version }, spec };
    try {
      const renewed = await client.patch<KubeObject>(path, { type: 'merge', body }, { signal });
      this.#version = renewed.metadata?.resourceVersion;
      return true;
    } catch (error) {
      if (!isCode(error, 'conflict')) throw error;
      const found = await client.get<KubeObject>(path, { signal });
      const { holder } = recordOf(found);
      // Something else on it was changed, or a renewal without an answer was carried out.
      if (holder === identity) this.#version = found.metadata?.resourceVersion;
      else this.#lost.abort(new LeaseLost(where, holder));
      return false;
    }
  }

  /** Others may take the Lease if it was not renewed for its duration, whatever the reason. */
  async #watchExpiry(): Promise<void> {
    const { sleep, monotonic } = this.#options.clock;
    while (!this.#stop.aborted) {
      const leftMs = this.#renewedAt + this.#durationMs - monotonic();
      if (leftMs <= 0) this.#lost.abort(new LeaseLost(this.#lease.where));
      else await sleep(leftMs, this.#stop).catch(() => undefined);
    }
  }

  async #giveUp(how: 'delete' | 'release', signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const { path, identity } = this.#lease;
    const lease = await client.get<KubeObject>(path, { signal });
    if (recordOf(lease).holder !== identity) return;
    const { uid = '', resourceVersion = '' } = lease.metadata ?? {};
    const body = { metadata: { resourceVersion }, spec: { holderIdentity: '', leaseDurationSeconds: 1 } };
    if (how === 'delete') await client.delete(path, { signal, uid, resourceVersion });
    else await client.patch(path, { type: 'merge', body }, { signal });
  }
}

/** The holder of a Lease, unless its record was not renewed for too long. */
function leaderOf(lease: KubeObject | undefined, now: number) {
  if (!lease) return undefined;
  const { holder, renewTime = '' } = recordOf(lease);
  const durationMs = durationOf(lease);
  const hasExpired = now - Date.parse(renewTime) > durationMs + maxClockSkewMs;
  return holder === '' || hasExpired ? undefined : { holder, durationMs };
}

function durationOf(lease: KubeObject | undefined): number {
  const durationMs = lease ? recordOf(lease).durationMs : 0;
  return durationMs > 1000 ? durationMs : usualDurationMs;
}

function takenSpec(before: KubeObject | undefined, holderIdentity: string, now: number): object {
  const at = microTime(now);
  return {
    holderIdentity,
    acquireTime: at,
    renewTime: at,
    leaseDurationSeconds: Math.ceil(durationOf(before) / 1000),
    leaseTransitions: before ? recordOf(before).transitions + 1 : 0,
  };
}
