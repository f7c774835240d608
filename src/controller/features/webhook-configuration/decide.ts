/**
 * The content of the webhook configuration for now. For each webhook of the file:
 *
 * - It comes into force, or moves to another place, when it answers there. Until then the one in force stays.
 * - It moves to another path when every endpoint answers at that path. Until then the path in force stays.
 * - `caBundle` has the Secret's authorities. Others stay until every endpoint shows a certificate of the
 *   Secret's, so an issuer may replace the authority at once (cert-manager does).
 * - OpenShift's service CA writes `caBundle` itself. Only a new webhook gets the Secret's authorities.
 */
import { distinct, type Certificate } from '../../../certificates/pem.ts';
import { readCaBundle, writeCaBundle, type Webhook } from '../../state/webhooks-file.ts';
import { pathOf, placeOf, type Probe } from './endpoints.ts';
import { withPath } from './path-secret.ts';

/** More do not help: each one is kept because a webhook may still show a certificate of it. */
const maxExtra = 4;

interface DecideOptions {
  /** The webhooks of the file. */
  readonly wanted: readonly Webhook[];
  /** The webhooks of the API server. */
  readonly actual: readonly Webhook[];
  /** The authorities of the Secret. */
  readonly bundle: readonly Certificate[];
  /** Another program writes `caBundle`. */
  readonly isInjected?: boolean;
  readonly probe: Probe;
  /** Server time, milliseconds. */
  readonly now: number;
}

/**
 * @returns the webhooks that there should be; the names of those that are not in force, or not at the file's
 *   place, because they do not answer, and why the first does not; whether a bundle has other authorities than
 *   the Secret; whether a path waits for an endpoint that does not accept it yet
 */
export async function decideWebhooks({ wanted, actual, ...now }: DecideOptions) {
  const decided: Awaited<ReturnType<typeof decideOne>>[] = [];
  for (const each of wanted) {
    const before = actual.find(({ name }) => name === each.name);
    decided.push(await decideOne(each, before, now));
  }
  const waiting = decided.filter(({ waitsFor }) => waitsFor !== undefined);
  return {
    webhooks: decided.flatMap(({ webhook }) => webhook ?? []),
    waiting: waiting.map(({ name }) => name),
    reason: waiting[0]?.waitsFor,
    extra: decided.some(({ hasExtra }) => hasExtra),
    moving: decided.some(({ isMoving }) => isMoving),
  };
}

async function decideOne(
  inFile: Webhook,
  before: Webhook | undefined,
  { bundle, isInjected = false, probe: probeWebhook, now }: Omit<DecideOptions, 'wanted' | 'actual'>,
) {
  const path = await pathFor(inFile, before, probeWebhook);
  const isMoving = path !== pathOf(inFile.clientConfig);
  const webhook = isMoving ? { ...inFile, clientConfig: withPath(inFile.clientConfig, path) } : inFile;
  const probe = () => probeWebhook(inFile, path);
  const isThere = before !== undefined && placeOf(before.clientConfig) === placeOf(webhook.clientConfig);
  const isProven = isThere || (await probe()).includes(undefined);
  const waitsFor = isProven ? undefined : (await probe())[0];
  const chosen = isProven ? webhook : before;
  const state = { name: inFile.name, isMoving, waitsFor };
  if (chosen === undefined) return { ...state, webhook: undefined, hasExtra: false };
  const { caBundle } = before?.clientConfig ?? {};
  const withBundle = (text: string) => ({
    ...chosen,
    clientConfig: { ...chosen.clientConfig, caBundle: text },
  });
  if (isInjected && caBundle !== undefined)
    return { ...state, webhook: withBundle(caBundle), hasExtra: false };
  const more = extraOf(readCaBundle(caBundle), bundle, now);
  const isNew = more.length === 0 || (await probe()).every((why) => why === undefined);
  const kept = isNew ? [] : more;
  return { ...state, webhook: withBundle(writeCaBundle([...bundle, ...kept])), hasExtra: kept.length > 0 };
}

/** The valid authorities of a bundle that another one lacks: the API server would stop trusting them. */
function extraOf(
  bundle: readonly Certificate[] | undefined,
  wanted: readonly Certificate[],
  now: number,
): readonly Certificate[] {
  const extra = (bundle ?? []).filter(
    ({ id, to, x509 }) => x509.ca && now < to && !wanted.some((each) => each.id === id),
  );
  return distinct(extra).slice(0, maxExtra);
}

async function pathFor(inFile: Webhook, before: Webhook | undefined, probe: Probe): Promise<string> {
  const { clientConfig } = inFile;
  const path = pathOf(clientConfig);
  if (before === undefined || placeOf(before.clientConfig) !== placeOf(clientConfig)) return path;
  const pathBefore = pathOf(before.clientConfig);
  const isAccepted = pathBefore === path || (await probe(inFile, path)).every((why) => why === undefined);
  return isAccepted ? path : pathBefore;
}
