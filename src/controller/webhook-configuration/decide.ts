/**
 * The content of the webhook configuration for now. For each webhook of the file:
 *
 * - It comes into force, or moves to another place, when it answers there. Until then the one in force stays.
 * - `failurePolicy: Fail` becomes `Ignore` while no webhook has been there for `absenceMs`, so that pods run without archwright. It becomes
 *   `Fail` again when the webhook answers.
 * - `caBundle` has the authorities of the Secret. Other authorities in it stay until every endpoint shows a certificate of the Secret's. So an
 *   issuer may replace the authority at once (cert-manager does).
 */
import { extraOf, readCaBundle, writeCaBundle } from './ca-bundle.ts';
import { placeOf } from './endpoints.ts';
import type { Certificate } from '../certificates/pem.ts';
import type { Webhook } from './webhooks-file.ts';

/** The state of a webhook's place. */
export interface Availability {
  /** Whether an endpoint answers. */
  readonly answers: () => Promise<boolean>;
  /** Whether all endpoints answer with certificates of the Secret's authorities; false if there are none. */
  readonly allAnswer: () => Promise<boolean>;
  /** For how long there has been no endpoint, milliseconds; `undefined`: there is one. */
  readonly absentMs: number | undefined;
}

export interface Decided {
  readonly webhooks: readonly Webhook[];
  /** Not in force, or not where the file says, because they do not answer. */
  readonly waiting: readonly string[];
  /** With `Ignore` although the file says `Fail`. */
  readonly relaxed: readonly string[];
  /** Whether a bundle has authorities beside those of the Secret. */
  readonly extra: boolean;
}

export interface DecideOptions {
  /** The webhooks of the file. */
  readonly wanted: readonly Webhook[];
  /** The webhooks of the API server. */
  readonly actual: readonly Webhook[];
  readonly bundle: readonly Certificate[];
  readonly availability: (webhook: Webhook) => Availability;
  /** 0: `Fail` stays. */
  readonly absenceMs: number;
  /** Server time, milliseconds. */
  readonly now: number;
}

export async function decideWebhooks(options: DecideOptions): Promise<Decided> {
  const webhooks: Webhook[] = [];
  const waiting: string[] = [];
  const relaxed: string[] = [];
  let extra = false;
  for (const wanted of options.wanted) {
    const actual = options.actual.find(({ name }) => name === wanted.name);
    const availability = options.availability(wanted);
    const isThere = actual !== undefined && placeOf(actual.clientConfig) === placeOf(wanted.clientConfig);
    const proven = isThere || (await availability.answers());
    if (!proven) waiting.push(wanted.name);
    const chosen = proven ? wanted : actual;
    if (chosen === undefined) continue;
    const policy = proven
      ? await failurePolicy(wanted, actual, availability, options.absenceMs)
      : chosen.failurePolicy;
    if (proven && policy !== wanted.failurePolicy) relaxed.push(wanted.name);
    const more = actual ? extraOf(readCaBundle(actual), options.bundle, options.now) : [];
    const kept = more.length > 0 && !(await availability.allAnswer()) ? more : [];
    extra ||= kept.length > 0;
    webhooks.push({
      ...chosen,
      ...(policy !== undefined && { failurePolicy: policy }),
      clientConfig: { ...chosen.clientConfig, caBundle: writeCaBundle([...options.bundle, ...kept]) },
    });
  }
  return { webhooks, waiting, relaxed, extra };
}

async function failurePolicy(
  wanted: Webhook,
  actual: Webhook | undefined,
  availability: Availability,
  absenceMs: number,
): Promise<string | undefined> {
  if (wanted.failurePolicy !== 'Fail') return wanted.failurePolicy;
  if (absenceMs === 0) return 'Fail';
  if (availability.absentMs !== undefined && availability.absentMs >= absenceMs) return 'Ignore';
  // It may be Ignore for a reason, for example because of an earlier leader.
  if (actual?.failurePolicy === 'Ignore' && !(await availability.answers())) return 'Ignore';
  return 'Fail';
}
