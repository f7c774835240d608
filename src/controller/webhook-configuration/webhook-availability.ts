/** Whether webhooks are there and answer, with at most one probe per endpoint and reconcile; and for how long there was none. */
import type { Clock } from '../../async/clock.ts';
import { writeCertificates, type Certificate } from '../certificates/pem.ts';
import type { Availability } from './decide.ts';
import { placeOf, type Endpoints } from './endpoints.ts';
import { probeWebhook, type ProbeTarget } from './probe.ts';
import type { Webhook } from './webhooks-file.ts';

export interface WebhookAvailabilityOptions {
  readonly endpoints: Endpoints;
  readonly clock: Clock;
  readonly probe?: typeof probeWebhook;
}

export interface WebhookAvailability {
  /**
   * Finds each webhook's place.
   * @returns for one reconcile; webhooks are probed when the answer is needed
   * @throws KubeError
   */
  observe(
    webhooks: readonly Webhook[],
    bundle: readonly Certificate[],
    signal: AbortSignal,
  ): Promise<Observed>;
}

export interface Observed {
  readonly of: (webhook: Webhook) => Availability;
  /** Why a webhook does not answer; `undefined`: it does, or it was not probed. */
  readonly why: (webhookName: string) => string | undefined;
}

/** A webhook has two or three replicas; of very many, some are enough. */
const maxProbed = 8;

export function createWebhookAvailability({
  endpoints,
  clock,
  probe = probeWebhook,
}: WebhookAvailabilityOptions): WebhookAvailability {
  /** By place, since when there is no endpoint; monotonic. */
  const absentSince = new Map<string, number>();

  async function placeStateOf(webhook: Webhook, ca: string, signal: AbortSignal) {
    const place = placeOf(webhook.clientConfig);
    const targets = await endpoints.of(webhook.clientConfig, signal);
    let probed: Promise<readonly (string | undefined)[]> | undefined;
    const probeOnce = (): Promise<readonly (string | undefined)[]> =>
      (probed ??= probeAll(targets, ca, signal, probe));
    // Ready endpoints are reported by kubelets. A probe also depends on the network from here.
    const isThere = webhook.clientConfig.service
      ? typeof targets !== 'string'
      : (await probeOnce()).includes(undefined);
    if (isThere) absentSince.delete(place);
    else if (!absentSince.has(place)) absentSince.set(place, clock.monotonic());
    const since = absentSince.get(place);
    const availability: Availability = {
      answers: async () => (await probeOnce()).includes(undefined),
      allAnswer: async () => (await probeOnce()).every((why) => why === undefined),
      absentMs: since === undefined ? undefined : clock.monotonic() - since,
    };
    const why = async (): Promise<string | undefined> => {
      const answers = probed === undefined ? [] : await probed;
      return answers.includes(undefined) ? undefined : answers[0];
    };
    return { availability, why };
  }

  return {
    observe: async (webhooks, bundle, signal) => {
      const ca = writeCertificates(bundle);
      const places = new Map<string, Awaited<ReturnType<typeof placeStateOf>>>();
      for (const webhook of webhooks) {
        const place = placeOf(webhook.clientConfig);
        if (!places.has(place)) places.set(place, await placeStateOf(webhook, ca, signal));
      }
      for (const place of absentSince.keys()) if (!places.has(place)) absentSince.delete(place);
      const reasons = new Map<string, string>();
      const of = (webhook: Webhook): Availability => {
        const found = places.get(placeOf(webhook.clientConfig));
        if (found === undefined) throw new TypeError('the webhook was not observed');
        const { answers, ...rest } = found.availability;
        return {
          ...rest,
          answers: async () => {
            const ok = await answers();
            const reason = await found.why();
            if (reason !== undefined) reasons.set(webhook.name, reason);
            return ok;
          },
        };
      };
      return { of, why: (name) => reasons.get(name) };
    },
  };
}

/** @returns why each endpoint does not answer, `undefined`: it does; never empty */
async function probeAll(
  targets: readonly ProbeTarget[] | string,
  ca: string,
  signal: AbortSignal,
  probe: typeof probeWebhook,
): Promise<readonly (string | undefined)[]> {
  if (typeof targets === 'string') return [targets];
  return await Promise.all(targets.slice(0, maxProbed).map((target) => probe(target, ca, signal)));
}
