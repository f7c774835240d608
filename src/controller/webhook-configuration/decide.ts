/**
 * What the webhook configuration should hold now. For each webhook of the file:
 *
 * - It comes into force when it answers, and moves to another place when that one answers. Until then the one in force stays.
 * - `failurePolicy: Fail` is taken back to `Ignore` while nobody has been there for `absenceMs`: pods run, whatever becomes of
 *   archwright. It becomes `Fail` again when the webhook answers.
 * - `caBundle` holds the authorities of the Secret; what it held besides stays until every endpoint shows a certificate
 *   of those. So whoever issues certificates may change the authority at once (cert-manager does).
 */
import { extraOf, readCaBundle, writeCaBundle } from './ca-bundle.ts';
import { placeOf } from './endpoints.ts';
import type { Certificate } from '../certificates/pem.ts';
import type { Webhook } from './webhooks-file.ts';

/** What is known of a webhook's place. */
export interface Presence {
  /** Whether somebody there answers. */
  readonly answers: () => Promise<boolean>;
  /** Whether all who are there answer, trusting nobody but the authorities of the Secret; false where nobody is there. */
  readonly allAnswer: () => Promise<boolean>;
  /** For how long nobody has been there, milliseconds; `undefined` where somebody is. */
  readonly absentMs: number | undefined;
}

export interface Decided {
  readonly webhooks: readonly Webhook[];
  /** Not in force, or not where the file says, because they do not answer. */
  readonly waiting: readonly string[];
  /** With `Ignore` where the file says `Fail`. */
  readonly relaxed: readonly string[];
  /** With authorities besides those of the Secret. */
  readonly extra: boolean;
}

export interface DecideOptions {
  /** The webhooks of the file. */
  readonly wanted: readonly Webhook[];
  /** Those that the API server holds. */
  readonly actual: readonly Webhook[];
  readonly bundle: readonly Certificate[];
  readonly presence: (webhook: Webhook) => Presence;
  /** 0: never taken back. */
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
    const presence = options.presence(wanted);
    const isThere = actual !== undefined && placeOf(actual.clientConfig) === placeOf(wanted.clientConfig);
    const proven = isThere || (await presence.answers());
    if (!proven) waiting.push(wanted.name);
    const chosen = proven ? wanted : actual;
    if (chosen === undefined) continue;
    const policy = proven
      ? await failurePolicy(wanted, actual, presence, options.absenceMs)
      : chosen.failurePolicy;
    if (proven && policy !== wanted.failurePolicy) relaxed.push(wanted.name);
    const more = actual ? extraOf(readCaBundle(actual), options.bundle, options.now) : [];
    const kept = more.length > 0 && !(await presence.allAnswer()) ? more : [];
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
  presence: Presence,
  absenceMs: number,
): Promise<string | undefined> {
  if (wanted.failurePolicy !== 'Fail') return wanted.failurePolicy;
  if (absenceMs === 0) return 'Fail';
  if (presence.absentMs !== undefined && presence.absentMs >= absenceMs) return 'Ignore';
  // Whoever made it Ignore, a leader before this one perhaps, may have had reason to.
  if (actual?.failurePolicy === 'Ignore' && !(await presence.answers())) return 'Ignore';
  return 'Fail';
}
