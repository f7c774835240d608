/** One pass: reads everything, does what the plan says, and reads again until nothing is left to do. */
import { KubeError } from '../../kube/api/errors.ts';
import { reveal } from '../../telemetry/secret.ts';
import type { Leading } from '../leadership/leading.ts';
import { readCaBundles } from '../webhook-configuration/ca-bundle.ts';
import { readAuthorities, trusted, writeAuthorities, type Authorities } from './authorities.ts';
import { issueAuthority, issueLeaf } from './issue.ts';
import { readLeaf, type IssueReason, type Leaf, type LeafName, type LeafSpec } from './leaves.ts';
import { agreedTimeOf, validity, type AgreedTime } from './clock-agreement.ts';
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
} from './plan.ts';
import type { FoundSecret, Secrets } from './secrets.ts';
import { paths } from '../../kube/api/paths.ts';

export interface ReconcileOptions {
  readonly secrets: Secrets;
  readonly caSecret: string;
  /** The leaves wanted now. */
  readonly specs: () => Promise<readonly LeafSpec[]>;
  /** Its `caBundle` counts as a bundle. */
  readonly webhookConfiguration: string | undefined;
  readonly times: Times;
  readonly leading: Pick<Leading, 'signal' | 'client' | 'clock' | 'serverNow' | 'log' | 'step'>;
  /** Hears of each certificate that was issued and written. */
  readonly issued: (certificate: LeafName | 'ca', reason: IssueReason) => void;
}

export interface ReconcileResult {
  readonly found: Found;
  /** Whether anything had to be written. */
  readonly wrote: boolean;
  /** When to look again, milliseconds from now. */
  readonly nextMs: number;
}

interface Read {
  readonly found: Found;
  readonly ca: FoundSecret | undefined;
  readonly leafSecrets: ReadonlyMap<LeafName, FoundSecret | undefined>;
  readonly specs: readonly LeafSpec[];
  readonly moment: AgreedTime;
}

/** A new authority touches every Secret and is done in five rounds; more means that somebody else writes too. */
const maxRounds = 12;
/** While something is awaited, it is looked at so often within the time that it takes. */
const looksPerSettling = 4;

/**
 * Makes the pass. What it remembers from one to the next is only for how long it has seen what the plan waits for.
 * @returns a function that rejects with KubeError where it could not end
 */
export function createCertificateReconciler(options: ReconcileOptions): () => Promise<ReconcileResult> {
  const { secrets, caSecret, times, leading } = options;
  const { signal, clock, log } = leading;
  const announced = createWatch(() => clock.monotonic());
  const replaced = createWatch(() => clock.monotonic());

  const momentNow = (): AgreedTime => agreedTimeOf(leading.serverNow(), clock.now());

  async function read(): Promise<Read> {
    const specs = await options.specs();
    // One after the other: the authority first, so that no leaf is newer than the authorities it is compared with.
    const ca = await secrets.read(caSecret);
    const leafSecrets = new Map<LeafName, FoundSecret | undefined>();
    for (const { name, secretName } of specs) leafSecrets.set(name, await secrets.read(secretName));
    const authorities = readAuthorities(ca?.texts ?? {});
    const leaves = new Map<LeafName, Leaf>();
    for (const [name, secret] of leafSecrets) leaves.set(name, readLeaf(secret?.texts));
    const isAwaited = authorities.newest !== undefined && authorities.phase === 'announcing';
    const caBundles = isAwaited ? await bundlesInForce() : [];
    return { found: { authorities, leaves, caBundles }, ca, leafSecrets, specs, moment: momentNow() };
  }

  async function bundlesInForce(): Promise<Found['caBundles']> {
    const name = options.webhookConfiguration;
    if (name === undefined) return [];
    try {
      return readCaBundles(await leading.client.get(paths.mutatingWebhookConfigurations(name), { signal }));
    } catch (error) {
      if (error instanceof KubeError && error.code === 'not-found') return [];
      if (error instanceof KubeError && error.code !== 'forbidden') throw error;
      log.warn({ name }, 'the webhook configuration cannot be read; the new authority has to wait');
      return [undefined];
    }
  }

  async function changeAuthorities(change: AuthorityChange, { ca, moment }: Read): Promise<void> {
    let next: Authorities;
    if (change.kind === 'issue')
      next = { newest: await issueAuthority(validity(moment, times.caMs)), ...change.keep };
    else next = change.next;
    let secret = ca;
    if (secret === undefined) {
      secret = await secrets.prepare(caSecret);
      await leading.step('certificates/prepared');
      // Somebody else was faster: what is in there counts.
      if (Object.keys(secret.texts).length > 0) return;
    }
    await secrets.change(caSecret, secret.resourceVersion, writeAuthorities(next));
    if (change.kind === 'issue') options.issued('ca', change.reason);
    log.info(
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

  async function doLeaf(
    work: LeafWork,
    spec: LeafSpec,
    secret: FoundSecret | undefined,
    authorities: Authorities,
  ) {
    const bundle = { 'ca.crt': writeCertificates(trusted(authorities)) };
    if (work.kind === 'bundle') {
      if (secret) await secrets.change(spec.secretName, secret.resourceVersion, bundle);
      log.info({ certificate: spec.name }, 'the authorities beside a certificate were written');
    } else if (spec.subject !== undefined) {
      const signer = (work.by === 'previous' ? authorities.previousSigner : undefined) ?? authorities.newest;
      const made = await issueLeaf(
        signer,
        spec.subject,
        validity(momentNow(), times.certificateMs, signer.certificate),
      );
      const texts = { 'tls.crt': made.certificate.pem, 'tls.key': reveal(made.key), ...bundle };
      if (secret) await secrets.change(spec.secretName, secret.resourceVersion, texts);
      else await secrets.createTls(spec.secretName, texts);
      options.issued(spec.name, work.reason);
      const expires = new Date(made.certificate.to).toISOString();
      log.info({ certificate: spec.name, reason: work.reason, expires }, 'a certificate was issued');
    }
    await leading.step(`certificates/${work.kind}-${spec.name}`);
  }

  /** Does one round of writes; whether there was anything to do. */
  async function round(state: Read): Promise<boolean> {
    const { found, moment } = state;
    const watched = {
      announcedMs: announced.see(isAnnounced(found), found),
      replacedMs: replaced.see(isReplaced(found), found),
    };
    const change = planAuthorities(found, moment, times, watched);
    if (change) {
      await changeAuthorities(change, state);
      return true;
    }
    const { authorities } = found;
    if (authorities.newest === undefined) throw new TypeError('no authority and no plan to make one');
    let worked = false;
    let failure: KubeError | undefined;
    for (const spec of state.specs) {
      const leaf = found.leaves.get(spec.name);
      const work = leaf && planLeaf(leaf, spec, authorities, moment, times);
      if (!work) continue;
      try {
        await doLeaf(work, spec, state.leafSecrets.get(spec.name), authorities);
        worked = true;
      } catch (error) {
        if (signal.aborted || !(error instanceof KubeError)) throw error;
        // One Secret that cannot be written keeps none of the others from being written.
        if (isOvertaken(error)) worked = true;
        else failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
    return worked;
  }

  return async () => {
    let wrote = false;
    for (let count = 0; count < maxRounds; count += 1) {
      const state = await read();
      try {
        if (!(await round(state))) return { found: state.found, wrote, nextMs: nextMs(state) };
      } catch (error) {
        if (!(error instanceof KubeError && isOvertaken(error))) throw error;
      }
      wrote = true;
    }
    throw new KubeError(
      'conflict',
      caSecret,
      'somebody else changes the Secrets of certificates again and again',
    );
  };

  function nextMs({ found, moment }: Read): number {
    const isSettling = found.authorities.newest !== undefined && found.authorities.previous.length > 0;
    return Math.max(
      50,
      Math.min(
        nextDue(found, moment) - moment.now,
        isSettling ? times.settleMs / looksPerSettling : Infinity,
      ),
    );
  }
}

/** It changed or went away between reading and writing: look again. */
function isOvertaken({ code }: KubeError): boolean {
  return code === 'conflict' || code === 'not-found';
}

/** For how long something has been seen without a break; another newest authority is a break. */
function createWatch(monotonic: () => number) {
  let since: { readonly of: string; readonly at: number } | undefined;
  return {
    see: (isSo: boolean, { authorities }: Found): number => {
      const of = authorities.newest?.certificate.id;
      if (!isSo || of === undefined) since = undefined;
      else if (since?.of !== of) since = { of, at: monotonic() };
      return since === undefined ? -1 : monotonic() - since.at;
    },
  };
}
