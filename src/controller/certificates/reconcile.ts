/** Reads all Secrets, makes the changes that `rotation-plan.ts` plans, and starts again until nothing is left to do. */
import { ignoring, isCode, KubeError } from '../../kube/api/errors.ts';
import { paths } from '../../kube/api/paths.ts';
import { reveal } from '../../telemetry/secret.ts';
import type { Leading } from '../leadership/leading.ts';
import { readCaBundles, type WebhookConfiguration } from '../webhook-configuration/ca-bundle.ts';
import { readAuthorities, trusted, writeAuthorities, type Authorities } from './authorities.ts';
import { agreedTimeOf, validity, type AgreedTime } from './clock-agreement.ts';
import { issueAuthority, issueLeaf } from './issue.ts';
import { readLeaf, type IssueReason, type Leaf, type LeafName, type LeafSpec } from './leaves.ts';
import { writeCertificates } from './pem.ts';
import {
  isAnnounced,
  isReplaced,
  nextDue,
  planAuthorities,
  planLeaf,
  type AuthorityChange,
  type Found,
  type LeafWork,
  type Times,
} from './rotation-plan.ts';
import type { FoundSecret, Secrets } from './secrets.ts';

export interface CertificateReconcilerOptions {
  readonly secrets: Secrets;
  readonly caSecret: string;
  /** The wanted leaves. */
  readonly specs: () => Promise<readonly LeafSpec[]>;
  /** Its `caBundle` counts as a bundle. */
  readonly webhookConfiguration: string | undefined;
  readonly times: Times;
  readonly leading: Pick<Leading, 'signal' | 'client' | 'clock' | 'serverNow' | 'log' | 'step'>;
  /** Called for each certificate that was issued and written. */
  readonly issued: (certificate: LeafName | 'ca', reason: IssueReason) => void;
}

export interface CertificatesOutcome {
  readonly found: Found;
  /** Whether anything had to be written. */
  readonly wrote: boolean;
  /** When to look again, milliseconds from now. */
  readonly nextMs: number;
}

/** One reading of everything. */
interface State {
  readonly found: Found;
  readonly ca: FoundSecret | undefined;
  readonly leafSecrets: ReadonlyMap<LeafName, FoundSecret | undefined>;
  readonly specs: readonly LeafSpec[];
  readonly time: AgreedTime;
}

/** A new authority changes every Secret and needs five rounds. More rounds mean that another writer changes them too. */
const maxRounds = 12;
/** Looks at the Secrets while the plan waits. */
const looksPerSettling = 4;
const minPauseMs = 50;

/** Remembers only for how long it has seen what the plan waits for. */
export class CertificateReconciler {
  readonly #options: CertificateReconcilerOptions;
  readonly #announced: Observation;
  readonly #replaced: Observation;

  constructor(options: CertificateReconcilerOptions) {
    this.#options = options;
    const { monotonic } = options.leading.clock;
    this.#announced = new Observation(monotonic);
    this.#replaced = new Observation(monotonic);
  }

  /** @throws KubeError */
  async reconcile(): Promise<CertificatesOutcome> {
    let wrote = false;
    for (let count = 0; count < maxRounds; count += 1) {
      const state = await this.#read();
      try {
        if (!(await this.#change(state))) return { found: state.found, wrote, nextMs: this.#nextMs(state) };
      } catch (error) {
        if (!isOvertaken(error)) throw error;
      }
      wrote = true;
    }
    const message = 'another writer changes the Secrets of certificates again and again: stop it';
    throw new KubeError('conflict', this.#options.caSecret, message);
  }

  async #read(): Promise<State> {
    const { secrets, caSecret } = this.#options;
    const specs = await this.#options.specs();
    // In this order, so that no leaf is newer than the authorities that it is compared with.
    const ca = await secrets.read(caSecret);
    const leafSecrets = new Map<LeafName, FoundSecret | undefined>();
    for (const { name, secretName } of specs) leafSecrets.set(name, await secrets.read(secretName));
    const authorities = readAuthorities(ca?.texts ?? {});
    const leaves = new Map<LeafName, Leaf>();
    for (const [name, secret] of leafSecrets) leaves.set(name, readLeaf(secret?.texts));
    const isAnnouncing = authorities.newest !== undefined && authorities.phase === 'announcing';
    const caBundles = isAnnouncing ? await this.#caBundles() : [];
    return { found: { authorities, leaves, caBundles }, ca, leafSecrets, specs, time: this.#timeNow() };
  }

  #timeNow(): AgreedTime {
    const { serverNow, clock } = this.#options.leading;
    return agreedTimeOf(serverNow(), clock.now());
  }

  async #caBundles(): Promise<Found['caBundles']> {
    const { webhookConfiguration: name, leading } = this.#options;
    const { client, signal, log } = leading;
    if (name === undefined) return [];
    const path = paths.mutatingWebhookConfigurations(name);
    try {
      const found = await ignoring('not-found', client.get<WebhookConfiguration>(path, { signal }));
      return found ? readCaBundles(found) : [];
    } catch (error) {
      if (!isCode(error, 'forbidden')) throw error;
      log.warn({ name }, 'the webhook configuration cannot be read, so the new authority has to wait');
      return [undefined];
    }
  }

  /** Writes what the plan says. @returns whether there was anything to do */
  async #change(state: State): Promise<boolean> {
    const { found, time } = state;
    const { times } = this.#options;
    const seen = {
      announcedMs: this.#announced.observe(isAnnounced(found), found),
      replacedMs: this.#replaced.observe(isReplaced(found), found),
    };
    const change = planAuthorities(found, time, times, seen);
    if (change) {
      await this.#changeAuthorities(change, state);
      return true;
    }
    const { authorities } = found;
    if (authorities.newest === undefined) throw new TypeError('no authority and no plan to make one');
    return await this.#changeLeaves(authorities, state);
  }

  async #changeAuthorities(change: AuthorityChange, { ca, time }: State): Promise<void> {
    const { secrets, caSecret, times, issued, leading } = this.#options;
    const next: Authorities =
      change.kind === 'issue'
        ? { newest: await issueAuthority(validity(time, times.caMs)), ...change.keep }
        : change.next;
    let secret = ca;
    if (secret === undefined) {
      secret = await secrets.prepare(caSecret);
      await leading.step('certificates/prepared');
      // Another writer was faster: its content counts.
      if (Object.keys(secret.texts).length > 0) return;
    }
    await secrets.change(caSecret, secret.resourceVersion, writeAuthorities(next));
    if (change.kind === 'issue') issued('ca', change.reason);
    leading.log.info(
      {
        change: change.kind,
        phase: next.phase,
        previous: next.previous.length,
        expires: new Date(next.newest.certificate.to).toISOString(),
        ...(change.kind === 'issue' && { reason: change.reason }),
      },
      'the certificate authorities changed',
    );
    await leading.step(`certificates/authority-${change.kind}`);
  }

  /** One Secret that cannot be written does not stop the others. */
  async #changeLeaves(
    authorities: Authorities,
    { found, specs, leafSecrets, time }: State,
  ): Promise<boolean> {
    const { times, leading } = this.#options;
    let worked = false;
    let failure: KubeError | undefined;
    for (const spec of specs) {
      const leaf = found.leaves.get(spec.name);
      const work = leaf && planLeaf(leaf, spec, authorities, time, times);
      if (!work) continue;
      try {
        await this.#changeLeaf(work, spec, leafSecrets.get(spec.name), authorities);
        worked = true;
      } catch (error) {
        if (leading.signal.aborted || !(error instanceof KubeError)) throw error;
        if (isOvertaken(error)) worked = true;
        else failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
    return worked;
  }

  async #changeLeaf(
    work: LeafWork,
    { name, secretName, subject }: LeafSpec,
    secret: FoundSecret | undefined,
    authorities: Authorities,
  ): Promise<void> {
    const { secrets, times, issued, leading } = this.#options;
    const bundle = { 'ca.crt': writeCertificates(trusted(authorities)) };
    if (work.kind === 'bundle') {
      if (secret) await secrets.change(secretName, secret.resourceVersion, bundle);
      leading.log.info({ certificate: name }, 'the authorities beside a certificate were written');
    } else if (subject !== undefined) {
      const signer = (work.by === 'previous' ? authorities.previousSigner : undefined) ?? authorities.newest;
      const life = validity(this.#timeNow(), times.certificateMs, signer.certificate);
      const { certificate, key } = await issueLeaf(signer, subject, life);
      const texts = { 'tls.crt': certificate.pem, 'tls.key': reveal(key), ...bundle };
      if (secret) await secrets.change(secretName, secret.resourceVersion, texts);
      else await secrets.createTls(secretName, texts);
      issued(name, work.reason);
      const expires = new Date(certificate.to).toISOString();
      leading.log.info({ certificate: name, reason: work.reason, expires }, 'a certificate was issued');
    }
    await leading.step(`certificates/${work.kind}-${name}`);
  }

  #nextMs({ found, time }: State): number {
    const { settleMs } = this.#options.times;
    const isSettling = found.authorities.newest !== undefined && found.authorities.previous.length > 0;
    const pauses = [nextDue(found, time) - time.now, isSettling ? settleMs / looksPerSettling : Infinity];
    return Math.max(minPauseMs, Math.min(...pauses));
  }
}

/** The object changed or went away between reading and writing: look again. */
function isOvertaken(error: unknown): boolean {
  return isCode(error, 'conflict', 'not-found');
}

/** For how long something has been true without a break. Another newest authority is a break. */
class Observation {
  readonly #monotonic: () => number;
  #since: { readonly authority: string; readonly at: number } | undefined;

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** @returns milliseconds; -1: it is not true */
  observe(isTrue: boolean, { authorities }: Found): number {
    const authority = authorities.newest?.certificate.id;
    if (!isTrue || authority === undefined) this.#since = undefined;
    else if (this.#since?.authority !== authority) this.#since = { authority, at: this.#monotonic() };
    return this.#since === undefined ? -1 : this.#monotonic() - this.#since.at;
  }
}
