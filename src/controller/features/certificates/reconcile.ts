/** Reads all Secrets and makes the changes of `rotation-plan.ts`, until nothing is left to do. */
import { ownNames } from '../../../names/keys.ts';
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
  planAuthorities,
  planLeaf,
  type AuthorityChange,
  type Found,
  type LeafWork,
} from './rotation-plan.ts';
import { readSecret, writeSecret, type FoundSecret } from '../../write/own-data.ts';

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

export function createReconciler(leader: LeaderContext, times: Times) {
  const { client, clock, configuration, log, metrics, serverNow, signal, webhooks } = leader;
  // As at the start: the watches are for these names.
  const { caSecret } = ownNames(configuration());
  const { webhookConfiguration: name } = configuration();
  /** Since when each awaited condition is true without a break. Another newest authority is a break. */
  const sinceWhen = new Map<string, { readonly authority: string; readonly at: number }>();

  /** @throws KubeError */
  async function reconcile() {
    let wrote = false;
    for (let count = 0; count < maxRounds; count += 1) {
      const found = await read();
      try {
        if (!(await change(found))) return { found, wrote };
      } catch (error) {
        if (!isOvertaken(error)) throw error;
      }
      wrote = true;
    }
    const message = 'another writer keeps changing the certificate Secrets; stop it';
    throw new KubeError('conflict', caSecret, message);
  }

  async function read(): Promise<State> {
    const specs = leafSpecs(configuration(), webhookNamesOf(webhooks?.current() ?? []));
    // In this order, so that no leaf is newer than the authorities that it is compared with.
    const ca = await readSecret(leader, caSecret);
    const leaves: Leaf[] = [];
    for (const spec of specs) {
      const secret = await readSecret(leader, spec.secretName);
      leaves.push({ ...spec, ...readLeaf(secret?.texts), resourceVersion: secret?.resourceVersion });
    }
    const authorities = readAuthorities(ca?.texts ?? {});
    const isAnnouncing = authorities.newest !== undefined && authorities.phase === 'announcing';
    const caBundles = isAnnouncing ? await readBundles() : [];
    return { authorities, leaves, caBundles, ca, time: timeNow() };
  }

  function timeNow(): AgreedTime {
    return agreedTimeOf(serverNow(), clock.now(), times);
  }

  async function readBundles(): Promise<Found['caBundles']> {
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
  async function change(found: State): Promise<boolean> {
    const { authorities } = found;
    const announcedMs = observe('announced', isAnnounced(found), found);
    const replacedMs = observe('replaced', isReplaced(found), found);
    const next = planAuthorities(found, announcedMs, replacedMs);
    if (next) {
      await changeAuthorities(next, found);
      return true;
    }
    if (authorities.newest === undefined) throw new TypeError('no authority and no plan to make one');
    return await changeLeaves(authorities, found);
  }

  /** @returns for how long it has been true, milliseconds; -1: it is not true */
  function observe(what: string, isTrue: boolean, { authorities }: Found): number {
    const authority = authorities.newest?.certificate.id;
    if (!isTrue || authority === undefined) {
      sinceWhen.delete(what);
      return -1;
    }
    const now = clock.monotonic();
    const since = sinceWhen.get(what);
    const at = since?.authority === authority ? since.at : now;
    sinceWhen.set(what, { authority, at });
    return now - at;
  }

  async function changeAuthorities(change: AuthorityChange, { ca, time }: State): Promise<void> {
    const next: Authorities =
      change.kind === 'issue'
        ? { newest: await issueAuthority(validity(time, time.caMs)), ...change.keep }
        : change.next;
    const secret = { name: caSecret, type: 'Opaque' } as const;
    await writeSecret(leader, secret, ca?.resourceVersion, writeAuthorities(next));
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
  async function changeLeaves(authorities: Authorities, { leaves, time }: State): Promise<boolean> {
    let worked = false;
    let failure: KubeError | undefined;
    for (const leaf of leaves) {
      const work = planLeaf(leaf, authorities, time);
      if (!work) continue;
      try {
        await changeLeaf(work, leaf, authorities);
        worked = true;
      } catch (error) {
        if (signal.aborted || !(error instanceof KubeError)) throw error;
        if (isOvertaken(error)) worked = true;
        else failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
    return worked;
  }

  async function changeLeaf(work: LeafWork, leaf: Leaf, authorities: Authorities): Promise<void> {
    const { name: certificate, secretName, resourceVersion } = leaf;
    const secret = { name: secretName, type: 'kubernetes.io/tls' } as const;
    const bundle = { 'ca.crt': writeCertificates(trusted(authorities)) };
    if (work === 'bundle') {
      await writeSecret(leader, secret, resourceVersion, bundle);
      log.info({ certificate }, 'the authorities beside a certificate were written');
      return;
    }
    const { reason, signer, subject } = work;
    const life = validity(timeNow(), times.certificateMs, signer.certificate);
    const issued = await issueLeaf(signer, subject, life);
    const texts = { 'tls.crt': issued.certificate.pem, 'tls.key': reveal(issued.key), ...bundle };
    await writeSecret(leader, secret, resourceVersion, texts);
    metrics.counter(certificatesIssued, { certificate, reason }).inc();
    const expires = new Date(issued.certificate.to).toISOString();
    log.info({ certificate, reason, expires }, 'a certificate was issued');
  }

  return reconcile;
}

/** The object changed or went away between reading and writing: look again. */
function isOvertaken(error: unknown): boolean {
  return isCode(error, 'conflict', 'not-found');
}
