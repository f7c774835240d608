/** Reads all Secrets and makes the changes of `rotation-plan.ts`, until nothing is left to do. */
import { ownNames } from '../../../names/own-names.ts';
import { ignoring, isCode, KubeError } from '../../../kube/api/errors.ts';
import { paths } from '../../../kube/api/paths.ts';
import { reveal } from '../../../telemetry/secret.ts';
import type { LeaderContext } from '../../lead/feature.ts';
import { readCaBundles, type WebhookConfiguration, webhookNamesOf } from '../../state/webhooks-file.ts';
import {
  readAuthorities,
  trusted,
  writeAuthorities,
  type Authorities,
} from '../../../certificates/authorities.ts';
import {
  agreedTimeOf,
  validity,
  type AgreedTime,
  type Times,
} from '../../../certificates/clock-agreement.ts';
import { issueAuthority, issueLeaf } from '../../../certificates/issue.ts';
import { counter } from '../../../telemetry/metrics.ts';
import { certificateNames, issueReasons, leafSpecs, readLeaf, type Leaf } from './leaves.ts';
import { writeCertificates } from '../../../certificates/pem.ts';
import {
  isAnnounced,
  isReplaced,
  nextDue,
  planAuthorities,
  planLeaf,
  type AuthorityChange,
  type Found,
  type LeafWork,
} from './rotation-plan.ts';
import { readSecret, writeSecret, type FoundSecret } from '../../write/secrets.ts';

export const certificatesIssued = counter(
  'archwright_certificates_issued_total',
  'Built-in certificates issued: regularly (due), for a new CA (authority), or as a repair.',
  { certificate: certificateNames, reason: issueReasons },
);

interface State extends Found {
  readonly ca: FoundSecret | undefined;
}

/** A new authority changes every Secret, in five rounds. More rounds mean that another writer does too. */
const maxRounds = 12;
/** Looks at the Secrets while the plan waits. */
const looksPerSettling = 4;
const minPauseMs = 50;

export class CertificateReconciler {
  readonly #leader: LeaderContext;
  readonly #times: Times;
  /** As at the start: the watches are for these names. */
  readonly #caSecret: string;
  readonly #webhookConfiguration: string | undefined;
  /** Since when each awaited condition is true without a break. Another newest authority is a break. */
  readonly #since = new Map<string, { readonly authority: string; readonly at: number }>();

  constructor(leader: LeaderContext, times: Times) {
    this.#leader = leader;
    this.#times = times;
    const configuration = leader.configuration();
    this.#caSecret = ownNames(configuration).caSecret;
    this.#webhookConfiguration = configuration.webhookConfiguration;
  }

  /** @returns `nextMs`: when to look again, milliseconds from now. @throws KubeError */
  async reconcile() {
    let wrote = false;
    for (let count = 0; count < maxRounds; count += 1) {
      const found = await this.#read();
      try {
        if (!(await this.#change(found))) return { found, wrote, nextMs: nextMsOf(found) };
      } catch (error) {
        if (!isOvertaken(error)) throw error;
      }
      wrote = true;
    }
    const message = 'another writer keeps changing the certificate Secrets; stop it';
    throw new KubeError('conflict', this.#caSecret, message);
  }

  async #read(): Promise<State> {
    const { configuration, webhooks } = this.#leader;
    const specs = leafSpecs(configuration(), webhookNamesOf(webhooks?.current() ?? []));
    // In this order, so that no leaf is newer than the authorities that it is compared with.
    const ca = await readSecret(this.#leader, this.#caSecret);
    const leaves: Leaf[] = [];
    for (const spec of specs) {
      const secret = await readSecret(this.#leader, spec.secretName);
      leaves.push({ ...spec, ...readLeaf(secret?.texts), resourceVersion: secret?.resourceVersion });
    }
    const authorities = readAuthorities(ca?.texts ?? {});
    const isAnnouncing = authorities.newest !== undefined && authorities.phase === 'announcing';
    const caBundles = isAnnouncing ? await this.#caBundles() : [];
    return { authorities, leaves, caBundles, ca, time: this.#timeNow() };
  }

  #timeNow(): AgreedTime {
    const { serverNow, clock } = this.#leader;
    return agreedTimeOf(serverNow(), clock.now(), this.#times);
  }

  async #caBundles(): Promise<Found['caBundles']> {
    const { client, signal, log, configuration } = this.#leader;
    const name = this.#webhookConfiguration;
    if (name === undefined || configuration().certificates === 'serviceCa') return [];
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

  /** Carries the plan out. @returns whether there was anything to do */
  async #change(found: State): Promise<boolean> {
    const { authorities } = found;
    const announcedMs = this.#observe('announced', isAnnounced(found), found);
    const replacedMs = this.#observe('replaced', isReplaced(found), found);
    const change = planAuthorities(found, announcedMs, replacedMs);
    if (change) {
      await this.#changeAuthorities(change, found);
      return true;
    }
    if (authorities.newest === undefined) throw new TypeError('no authority and no plan to make one');
    return await this.#changeLeaves(authorities, found);
  }

  /** @returns for how long it has been true, milliseconds; -1: it is not true */
  #observe(what: string, isTrue: boolean, { authorities }: Found): number {
    const now = this.#leader.clock.monotonic();
    const authority = authorities.newest?.certificate.id;
    const since = this.#since.get(what);
    const at = since !== undefined && since.authority === authority ? since.at : now;
    if (isTrue && authority !== undefined) this.#since.set(what, { authority, at });
    else this.#since.delete(what);
    return this.#since.has(what) ? now - at : -1;
  }

  async #changeAuthorities(change: AuthorityChange, { ca, time }: State): Promise<void> {
    const { log, metrics } = this.#leader;
    const next: Authorities =
      change.kind === 'issue'
        ? { newest: await issueAuthority(validity(time, time.caMs)), ...change.keep }
        : change.next;
    const secret = { name: this.#caSecret, type: 'Opaque' } as const;
    await writeSecret(this.#leader, secret, ca?.resourceVersion, writeAuthorities(next));
    if (change.kind === 'issue')
      metrics.counter(certificatesIssued, { certificate: 'ca', reason: change.reason }).inc();
    const fields = {
      change: change.kind,
      phase: next.phase,
      previous: next.previous.length,
      expires: new Date(next.newest.certificate.to).toISOString(),
      ...(change.kind === 'issue' && { reason: change.reason }),
    };
    log.info(fields, 'the certificate authorities changed');
  }

  /** One Secret that cannot be written does not stop the others. */
  async #changeLeaves(authorities: Authorities, { leaves, time }: State): Promise<boolean> {
    let worked = false;
    let failure: KubeError | undefined;
    for (const leaf of leaves) {
      const work = planLeaf(leaf, authorities, time);
      if (!work) continue;
      try {
        await this.#changeLeaf(work, leaf, authorities);
        worked = true;
      } catch (error) {
        if (this.#leader.signal.aborted || !(error instanceof KubeError)) throw error;
        if (isOvertaken(error)) worked = true;
        else failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
    return worked;
  }

  async #changeLeaf(work: LeafWork, leaf: Leaf, authorities: Authorities): Promise<void> {
    const { log, metrics } = this.#leader;
    const { name, secretName, subject, resourceVersion } = leaf;
    const secret = { name: secretName, type: 'kubernetes.io/tls' } as const;
    const bundle = { 'ca.crt': writeCertificates(trusted(authorities)) };
    if (work.kind === 'bundle') {
      await writeSecret(this.#leader, secret, resourceVersion, bundle);
      log.info({ certificate: name }, 'the authorities beside a certificate were written');
    } else if (subject !== undefined) {
      const signer = (work.by === 'previous' ? authorities.previousSigner : undefined) ?? authorities.newest;
      const life = validity(this.#timeNow(), this.#times.certificateMs, signer.certificate);
      const { certificate, key } = await issueLeaf(signer, subject, life);
      const texts = { 'tls.crt': certificate.pem, 'tls.key': reveal(key), ...bundle };
      await writeSecret(this.#leader, secret, resourceVersion, texts);
      metrics.counter(certificatesIssued, { certificate: name, reason: work.reason }).inc();
      const expires = new Date(certificate.to).toISOString();
      log.info({ certificate: name, reason: work.reason, expires }, 'a certificate was issued');
    }
  }
}

function nextMsOf(found: Found): number {
  const { authorities, time } = found;
  const isSettling = authorities.newest !== undefined && authorities.previous.length > 0;
  const settling = isSettling ? time.settleMs / looksPerSettling : Infinity;
  return Math.max(minPauseMs, Math.min(nextDue(found) - time.now, settling));
}

/** The object changed or went away between reading and writing: look again. */
function isOvertaken(error: unknown): boolean {
  return isCode(error, 'conflict', 'not-found');
}
