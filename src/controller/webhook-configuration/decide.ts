/**
 * The content of the webhook configuration for now. For each webhook of the file:
 *
 * - It comes into force, or moves to another place, when it answers there. Until then the one in force stays.
 * - `failurePolicy: Fail` becomes `Ignore` while no webhook has been there for `absenceMs`, so that pods run without archwright. It becomes
 *   `Fail` again when the webhook answers.
 * - `caBundle` has the authorities of the Secret. Other authorities in it stay until every endpoint shows a certificate of the Secret's. So an
 *   issuer may replace the authority at once (cert-manager does).
 */
import type { Certificate } from '../certificates/pem.ts';
import { extraOf, readCaBundle, writeCaBundle } from './ca-bundle.ts';
import { placeOf } from './endpoints.ts';
import type { Availability } from './webhook-availability.ts';
import type { Webhook } from './webhooks-file.ts';

interface DecideOptions {
  /** The webhooks of the file. */
  readonly wanted: readonly Webhook[];
  /** The webhooks of the API server. */
  readonly actual: readonly Webhook[];
  /** The authorities of the Secret. */
  readonly bundle: readonly Certificate[];
  readonly availability: (webhook: Webhook) => Availability;
  /** 0: `Fail` stays. */
  readonly absenceMs: number;
  /** Server time, milliseconds. */
  readonly now: number;
}

export async function decideWebhooks({
  wanted,
  actual,
  bundle,
  availability,
  absenceMs,
  now,
}: DecideOptions) {
  const webhooks: Webhook[] = [];
  /** Not in force, or not where the file says, because they do not answer. */
  const waiting: string[] = [];
  /** With `Ignore` although the file says `Fail`. */
  const relaxed: string[] = [];
  /** Why the first one that waits does not answer. */
  let reason: string | undefined;
  /** Whether a bundle has authorities beside those of the Secret. */
  let extra = false;
  for (const webhook of wanted) {
    const before = actual.find(({ name }) => name === webhook.name);
    const { probe, absentMs } = availability(webhook);
    const isThere = before !== undefined && placeOf(before.clientConfig) === placeOf(webhook.clientConfig);
    const proven = isThere || (await probe()).includes(undefined);
    if (!proven) {
      waiting.push(webhook.name);
      reason ??= (await probe())[0];
    }
    const chosen = proven ? webhook : before;
    if (chosen === undefined) continue;
    let policy = chosen.failurePolicy;
    if (proven && policy === 'Fail' && absenceMs !== 0) {
      const isGone = absentMs !== undefined && absentMs >= absenceMs;
      // It may be Ignore for a reason, for example because of an earlier leader.
      const wasRelaxed = before?.failurePolicy === 'Ignore';
      if (isGone || (wasRelaxed && !(await probe()).includes(undefined))) policy = 'Ignore';
    }
    if (policy !== chosen.failurePolicy) relaxed.push(webhook.name);
    const more = extraOf(readCaBundle(before?.clientConfig.caBundle), bundle, now);
    const isNew = more.length === 0 || (await probe()).every((why) => why === undefined);
    const kept = isNew ? [] : more;
    extra ||= kept.length > 0;
    webhooks.push({
      ...chosen,
      ...(policy !== undefined && { failurePolicy: policy }),
      clientConfig: { ...chosen.clientConfig, caBundle: writeCaBundle([...bundle, ...kept]) },
    });
  }
  return { webhooks, waiting, relaxed, reason, extra };
}
