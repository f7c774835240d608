/** Whether webhooks answer, or since when none exists. At most one probe per endpoint, path and reconcile. */
import { request } from 'node:https';
import { isIP } from 'node:net';
import type { Clock } from '../../async/clock.ts';
import { writeCertificates, type Certificate } from '../certificates/pem.ts';
import { placeOf, type Endpoints, type ProbeTarget } from './endpoints.ts';
import type { Webhook } from './webhooks-file.ts';

/** The state of a webhook's place. */
export interface Availability {
  /**
   * Probes the endpoints on the first call for a path.
   * @param path that of reviews, which a webhook without it answers with 404
   * @returns for each endpoint, why no certificate of the Secret's authorities came; `undefined`: it did.
   *   Never empty. Complete if every endpoint answers; else endpoints after the first failure may be missing.
   */
  readonly probe: (path: string) => Promise<readonly (string | undefined)[]>;
  /** For how long there has been no endpoint, milliseconds; `undefined`: there is one. */
  readonly absentMs: number | undefined;
}

/** Probes at the same time. If all of the first ones fail, the others are not probed: no webhook answers. */
const probesAtOnce = 20;

export class WebhookAvailability {
  readonly #endpoints: Endpoints;
  readonly #clock: Clock;
  /** By place, since when there is no endpoint; monotonic. */
  readonly #absentSince = new Map<string, number>();

  constructor(endpoints: Endpoints, clock: Clock) {
    this.#endpoints = endpoints;
    this.#clock = clock;
  }

  /** Finds each webhook's place. @returns by place, for one reconcile */
  async observe(
    webhooks: readonly Webhook[],
    bundle: readonly Certificate[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Availability>> {
    const configs = webhooks.map(({ clientConfig }) => clientConfig);
    const wanted = new Map(configs.map((config) => [placeOf(config), config]));
    this.#endpoints.keep(configs);
    for (const place of this.#absentSince.keys()) if (!wanted.has(place)) this.#absentSince.delete(place);
    const places = new Map<string, Availability>();
    for (const [place, config] of wanted) {
      const targets = await this.#endpoints.of(config, signal);
      const probed = new Map<string, ReturnType<Availability['probe']>>();
      const probe: Availability['probe'] = (path) => {
        const known = probed.get(path) ?? probeAll(targets, path, writeCertificates(bundle), signal);
        probed.set(path, known);
        return known;
      };
      // Ready endpoints are reported by kubelets. A probe also depends on the network from here.
      const isThere = config.service
        ? typeof targets !== 'string'
        : (await probe('/readyz')).includes(undefined);
      places.set(place, { probe, absentMs: this.#absentMs(place, isThere) });
    }
    return places;
  }

  #absentMs(place: string, isThere: boolean): number | undefined {
    const now = this.#clock.monotonic();
    const since = this.#absentSince.get(place) ?? now;
    if (isThere) this.#absentSince.delete(place);
    else this.#absentSince.set(place, since);
    return isThere ? undefined : now - since;
  }
}

async function probeAll(
  targets: readonly ProbeTarget[] | string,
  path: string,
  ca: string,
  signal: AbortSignal,
) {
  if (typeof targets === 'string') return [targets];
  const results: (string | undefined)[] = [];
  while (results.length < targets.length) {
    const next = targets.slice(results.length, results.length + probesAtOnce);
    results.push(...(await Promise.all(next.map((target) => probeWebhook(target, path, ca, signal)))));
    if (results.some((why) => why !== undefined)) break;
  }
  return results;
}

/** A webhook that takes longer for its own state is too slow for admissions. */
const timeoutMs = 2000;

/**
 * Requests a path as the API server reaches the webhook: by TLS, with the same authorities.
 * @param ca authorities to trust, PEM
 * @returns why it does not answer; `undefined`: it does
 */
export function probeWebhook(
  { host, port, serverName }: ProbeTarget,
  path: string,
  ca: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  return new Promise((resolve) => {
    const sent = request(
      {
        host,
        port,
        path,
        ca,
        // As the API server (Go, crypto/x509): an authority in `caBundle` need not be a root.
        allowPartialTrustChain: true,
        minVersion: 'TLSv1.2',
        agent: false,
        signal: deadline,
        // An address is no server name (RFC 6066, 3); it is still compared with the certificate.
        ...(isIP(serverName) === 0 && { servername: serverName }),
        headers: { 'user-agent': 'archwright-controller' },
      },
      (answer) => {
        const status = answer.statusCode ?? 0;
        // The body is not needed.
        answer.destroy();
        resolve(status === 200 ? undefined : `it answered with status ${status}`);
      },
    );
    sent.on('error', (error) => {
      resolve(deadline.aborted ? `no answer within ${timeoutMs} ms` : error.message.slice(0, 200));
    });
    sent.end();
  });
}
