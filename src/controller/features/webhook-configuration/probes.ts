/** Whether webhooks answer. At most one probe per endpoint, path and reconcile. */
import { request } from 'node:https';
import { isIP } from 'node:net';
import { writeCertificates, type Certificate } from '../../../certificates/pem.ts';
import { placeOf, type Endpoints, type ProbeTarget } from './endpoints.ts';
import type { Webhook } from '../../state/webhooks-file.ts';

/**
 * Probes the endpoints of a webhook.
 * @param path that of reviews, which a webhook without it answers with 404
 * @returns for each endpoint, why no certificate of the Secret's authorities came; `undefined`: it did. Never
 *   empty. Complete if every endpoint answers; else endpoints after the first failure may be missing.
 */
export type Probe = (webhook: Webhook, path: string) => Promise<readonly (string | undefined)[]>;

/** Probes at the same time. If all of the first ones fail, the others are not probed: no webhook answers. */
const probesAtOnce = 20;

/** The probes of one reconcile. @param bundle the authorities to trust */
export function createProbe(
  endpoints: Endpoints,
  bundle: readonly Certificate[],
  signal: AbortSignal,
): Probe {
  const probed = new Map<string, ReturnType<Probe>>();
  const ca = writeCertificates(bundle);
  return ({ clientConfig }, path) => {
    const key = `${placeOf(clientConfig)} ${path}`;
    const known = probed.get(key) ?? probeAll(endpoints.of(clientConfig), path, ca, signal);
    probed.set(key, known);
    return known;
  };
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
