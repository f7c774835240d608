/** Whether webhooks are there: asked at most once per place and pass, and for how long nobody was. */
import type { Clock } from '../../async/clock.ts';
import { writeCertificates, type Certificate } from '../certificates/pem.ts';
import type { Presence } from './decide.ts';
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
   * Looks at each webhook's place.
   * @returns what was seen, for one pass; questions to webhooks are asked when somebody wants the answer
   * @throws KubeError where the places cannot be found
   */
  look(webhooks: readonly Webhook[], bundle: readonly Certificate[], signal: AbortSignal): Promise<Looked>;
}

export interface Looked {
  readonly of: (webhook: Webhook) => Presence;
  /** Why a webhook does not answer, for people; undefined where it does or was not asked. */
  why(webhookName: string): string | undefined;
}

/** A webhook has two or three replicas; of very many some are enough. */
const maxAsked = 8;

export function createWebhookAvailability({
  endpoints,
  clock,
  probe = probeWebhook,
}: WebhookAvailabilityOptions): WebhookAvailability {
  /** Place → since when nobody is there, monotonic. */
  const absentSince = new Map<string, number>();

  async function lookAt(webhook: Webhook, ca: string, signal: AbortSignal) {
    const place = placeOf(webhook.clientConfig);
    const targets = await endpoints.of(webhook.clientConfig, signal);
    let asked: Promise<readonly (string | undefined)[]> | undefined;
    const ask = (): Promise<readonly (string | undefined)[]> =>
      (asked ??= askAll(targets, ca, signal, probe));
    // Whether a Service has endpoints is the kubelet's word, which does not depend on whom we can reach.
    const isThere = webhook.clientConfig.service
      ? typeof targets !== 'string'
      : (await ask()).includes(undefined);
    if (isThere) absentSince.delete(place);
    else if (!absentSince.has(place)) absentSince.set(place, clock.monotonic());
    const since = absentSince.get(place);
    const presence: Presence = {
      answers: async () => (await ask()).includes(undefined),
      allAnswer: async () => (await ask()).every((why) => why === undefined),
      absentMs: since === undefined ? undefined : clock.monotonic() - since,
    };
    const why = async (): Promise<string | undefined> => {
      const answers = asked === undefined ? [] : await asked;
      return answers.includes(undefined) ? undefined : answers[0];
    };
    return { presence, why };
  }

  return {
    look: async (webhooks, bundle, signal) => {
      const ca = writeCertificates(bundle);
      const places = new Map<string, Awaited<ReturnType<typeof lookAt>>>();
      for (const webhook of webhooks) {
        const place = placeOf(webhook.clientConfig);
        if (!places.has(place)) places.set(place, await lookAt(webhook, ca, signal));
      }
      for (const place of absentSince.keys()) if (!places.has(place)) absentSince.delete(place);
      const reasons = new Map<string, string>();
      const of = (webhook: Webhook): Presence => {
        const found = places.get(placeOf(webhook.clientConfig));
        if (found === undefined) throw new TypeError('a webhook that was not looked at');
        const { answers, ...rest } = found.presence;
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

/** @returns for each that was asked why it does not answer, `undefined` where it does; never empty */
async function askAll(
  targets: readonly ProbeTarget[] | string,
  ca: string,
  signal: AbortSignal,
  probe: typeof probeWebhook,
): Promise<readonly (string | undefined)[]> {
  if (typeof targets === 'string') return [targets];
  return await Promise.all(targets.slice(0, maxAsked).map((target) => probe(target, ca, signal)));
}
