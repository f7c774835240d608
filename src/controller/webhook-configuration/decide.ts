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

interface Decided {
  readonly name: string;
  /** `undefined`: it does not come into force yet. */
  readonly webhook?: Webhook;
  /** Why it does not answer, so it is not in force, or not at the file's place. */
  readonly waitsFor?: string | undefined;
  /** `Ignore` in place of `Fail` in the file. */
  readonly isRelaxed?: boolean;
  /** Its bundle has authorities beside those of the Secret. */
  readonly hasExtra?: boolean;
  /** Its path waits for an endpoint that does not accept it yet. */
  readonly isMoving: boolean;
}

export async function decideWebhooks({ wanted, actual, ...now }: DecideOptions) {
  const decided: Decided[] = [];
  for (const each of wanted) {
    const before = actual.find(({ name }) => name === each.name);
    decided.push(await decideOne(each, before, now));
  }
  const waiting = decided.filter(({ waitsFor }) => waitsFor !== undefined);
  return {
    webhooks: decided.flatMap(({ webhook }) => webhook ?? []),
    waiting: waiting.map(({ name }) => name),
    reason: waiting[0]?.waitsFor,
    relaxed: decided.filter(({ isRelaxed }) => isRelaxed).map(({ name }) => name),
    extra: decided.some(({ hasExtra }) => hasExtra),
    moving: decided.some(({ isMoving }) => isMoving),
  };
}

async function decideOne(
  inFile: Webhook,
  before: Webhook | undefined,
  { bundle, availability, absenceMs, now }: Omit<DecideOptions, 'wanted' | 'actual'>,
): Promise<Decided> {
  const { probe: probePath, absentMs } = availability(inFile);
  const path = await pathFor(inFile, before, probePath);
  const isMoving = path !== pathOf(inFile.clientConfig);
  const webhook = isMoving ? { ...inFile, clientConfig: withPath(inFile.clientConfig, path) } : inFile;
  const probe = () => probePath(path);
  const isThere = before !== undefined && placeOf(before.clientConfig) === placeOf(webhook.clientConfig);
  const isProven = isThere || (await probe()).includes(undefined);
  const { name } = inFile;
  const state = { name, isMoving, waitsFor: isProven ? undefined : (await probe())[0] };
  const chosen = isProven ? webhook : before;
  if (chosen === undefined) return state;
  const mayRelax = isProven && chosen.failurePolicy === 'Fail' && absenceMs !== 0;
  const isGone = absentMs !== undefined && absentMs >= absenceMs;
  // It may be Ignore for a reason, for example because of an earlier leader.
  const wasRelaxed = before?.failurePolicy === 'Ignore';
  const isRelaxed = mayRelax && (isGone || (wasRelaxed && !(await probe()).includes(undefined)));
  const more = extraOf(readCaBundle(before?.clientConfig.caBundle), bundle, now);
  const isNew = more.length === 0 || (await probe()).every((why) => why === undefined);
  const kept = isNew ? [] : more;
  const decided = {
    ...chosen,
    ...(isRelaxed && { failurePolicy: 'Ignore' }),
    clientConfig: { ...chosen.clientConfig, caBundle: writeCaBundle([...bundle, ...kept]) },
  };
  return { ...state, webhook: decided, isRelaxed, hasExtra: kept.length > 0 };
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
