/**
 * The content of the webhook configuration for now. For each webhook of the file:
 *
 * - It comes into force, or moves to another place, when it answers there. Until then the one in force stays.
 * - It moves to another path when every endpoint answers at that path. Until then the path in force stays.
 * - `failurePolicy: Fail` becomes `Ignore` once no webhook was there for `absenceMs`, so pods run without
 *   archwright. It becomes `Fail` again when the webhook answers.
 * - `caBundle` has the Secret's authorities. Others stay until every endpoint shows a certificate of the
 *   Secret's, so an issuer may replace the authority at once (cert-manager does).
 */
import type { Certificate } from '../certificates/pem.ts';
import { extraOf, readCaBundle, writeCaBundle } from './ca-bundle.ts';
import { pathOf, placeOf } from './endpoints.ts';
import { withPath } from './path-secret.ts';
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
  /** Not in force, or not at the file's place, because they do not answer. */
  const waiting: string[] = [];
  /** With `Ignore` in place of `Fail` in the file. */
  const relaxed: string[] = [];
  /** Why the first one that waits does not answer. */
  let reason: string | undefined;
  /** Whether a bundle has authorities beside those of the Secret. */
  let extra = false;
  /** Whether a path waits for an endpoint that does not accept it yet. */
  let moving = false;
  for (const each of wanted) {
    const before = actual.find(({ name }) => name === each.name);
    const { probe: probePath, absentMs } = availability(each);
    const path = await pathFor(each, before, probePath);
    const moves = path !== pathOf(each.clientConfig);
    moving ||= moves;
    const webhook = moves ? { ...each, clientConfig: withPath(each.clientConfig, path) } : each;
    const probe = () => probePath(path);
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
  return { webhooks, waiting, relaxed, reason, extra, moving };
}

async function pathFor(
  { clientConfig }: Webhook,
  before: Webhook | undefined,
  probe: Availability['probe'],
): Promise<string> {
  const path = pathOf(clientConfig);
  if (before === undefined || placeOf(before.clientConfig) !== placeOf(clientConfig)) return path;
  const pathBefore = pathOf(before.clientConfig);
  const isAccepted = pathBefore === path || (await probe(path)).every((why) => why === undefined);
  return isAccepted ? path : pathBefore;
}
