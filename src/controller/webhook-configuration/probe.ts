/** Probes a webhook's readiness as the API server reaches it: by TLS, with the same authorities. */
import { request } from 'node:https';
import { isIP } from 'node:net';

export interface ProbeTarget {
  /** Address or name to dial. */
  readonly host: string;
  readonly port: number;
  /** The name in the certificate. */
  readonly serverName: string;
}

/** A webhook that takes longer for its own state is too slow for admissions. */
const defaultTimeoutMs = 2000;

/**
 * Requests `/readyz`.
 * @param ca authorities to trust, PEM
 * @returns why it does not answer; `undefined`: it does
 */
export function probeWebhook(
  target: ProbeTarget,
  ca: string,
  signal: AbortSignal,
  timeoutMs = defaultTimeoutMs,
): Promise<string | undefined> {
  const { host, port, serverName } = target;
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  return new Promise((resolve) => {
    const sent = request(
      {
        host,
        port,
        path: '/readyz',
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
        // Its text is for people.
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
