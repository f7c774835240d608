/**
 * The content of the webhook configuration for now. For each webhook of the file:
 *
 * - It comes into force, or moves to another place, when it answers there. Until then the one in force stays.
 * - It moves to another path when every endpoint answers at that path. Until then the path in force stays.
 * - `caBundle` has the Secret's authorities. Others stay until every endpoint shows a certificate of the
 *   Secret's, so an issuer may replace the authority at once (cert-manager does).
 * - OpenShift's service CA writes `caBundle` itself. Only a new webhook gets the Secret's authorities.
 */
import type { Certificate } from '../../../certificates/pem.ts';
import { extraOf, readCaBundle, writeCaBundle } from '../../state/ca-bundle.ts';
import { pathOf, placeOf } from './endpoints.ts';
import { withPath } from './path-secret.ts';
import type { Probe } from './probes.ts';
import type { Webhook } from '../../state/webhooks-file.ts';

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

interface WebhookDecision {
  readonly name: string;
  /** `undefined`: it does not come into force yet. */
  readonly webhook?: Webhook;
  /** Why it does not answer, so it is not in force, or not at the file's place. */
  readonly waitsFor?: string | undefined;
  /** Its bundle has authorities beside those of the Secret. */
  readonly hasExtra?: boolean;
  /** Its path waits for an endpoint that does not accept it yet. */
  readonly isMoving: boolean;
}

export async function decideWebhooks({ wanted, actual, ...now }: DecideOptions) {
  const decided: WebhookDecision[] = [];
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
): Promise<WebhookDecision> {
  const path = await pathFor(inFile, before, probeWebhook);
  const isMoving = path !== pathOf(inFile.clientConfig);
  const webhook = isMoving ? { ...inFile, clientConfig: withPath(inFile.clientConfig, path) } : inFile;
  const probe = () => probeWebhook(inFile, path);
  const isThere = before !== undefined && placeOf(before.clientConfig) === placeOf(webhook.clientConfig);
  const isProven = isThere || (await probe()).includes(undefined);
  const { name } = inFile;
  const state = { name, isMoving, waitsFor: isProven ? undefined : (await probe())[0] };
  const chosen = isProven ? webhook : before;
  if (chosen === undefined) return state;
  const injected = isInjected ? before?.clientConfig.caBundle : undefined;
  if (injected !== undefined) {
    return { ...state, webhook: { ...chosen, clientConfig: { ...chosen.clientConfig, caBundle: injected } } };
  }
  const more = extraOf(readCaBundle(before?.clientConfig.caBundle), bundle, now);
  const isNew = more.length === 0 || (await probe()).every((why) => why === undefined);
  const kept = isNew ? [] : more;
  const clientConfig = { ...chosen.clientConfig, caBundle: writeCaBundle([...bundle, ...kept]) };
  return { ...state, webhook: { ...chosen, clientConfig }, hasExtra: kept.length > 0 };
}

async function pathFor(inFile: Webhook, before: Webhook | undefined, probe: Probe): Promise<string> {
  const { clientConfig } = inFile;
  const path = pathOf(clientConfig);
  if (before === undefined || placeOf(before.clientConfig) !== placeOf(clientConfig)) return path;
  const pathBefore = pathOf(before.clientConfig);
  const isAccepted = pathBefore === path || (await probe(inFile, path)).every((why) => why === undefined);
  return isAccepted ? path : pathBefore;
}
