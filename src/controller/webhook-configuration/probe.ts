/** Asks a webhook whether it is ready, the way the API server would reach it: by TLS, with the same authorities. */
import { request } from 'node:https';
import { isIP } from 'node:net';

export interface ProbeTarget {
  /** Address or name to dial. */
  readonly host: string;
  readonly port: number;
  /** The name that the certificate has to be for. */
  readonly serverName: string;
}

/** A webhook that takes longer than this for its own state is none to send admissions to. */
const defaultTimeoutMs = 2000;

/**
 * Asks for `/readyz`.
 * @param ca authorities to trust, PEM
 * @returns why it does not answer; `undefined` where it does
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
        // As the API server does (Go, crypto/x509): what is in `caBundle` need not be a root.
        allowPartialTrustChain: true,
        minVersion: 'TLSv1.2',
        agent: false,
        signal: deadline,
        // An address is no server name (RFC 6066, 3); it is compared with the certificate all the same.
        ...(isIP(serverName) === 0 && { servername: serverName }),
        headers: { 'user-agent': 'archwright-controller' },
      },
      (answer) => {
        const status = answer.statusCode ?? 0;
        // Its text is for people who ask themselves.
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
