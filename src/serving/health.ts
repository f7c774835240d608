/**
 * Health and metrics: `/healthz` (the process answers), `/readyz` (it accepts traffic; each check in the
 * format of the API server) and `/metrics` for Prometheus. They have their own port, so that overload of the
 * main port does not fail the probes. TLS is optional: the kubelet's probes do not verify certificates, and
 * nothing on these pages is secret.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { startServer, type RunningServer, type ServerTls } from './server.ts';

/** The reason for a failure, for people; `undefined` for success. */
export type Check = () => string | undefined;
export type Checks = Readonly<Record<string, Check>>;

export interface HealthOptions {
  /** `host:port`. */
  readonly listen: string;
  /** Directory with `tls.crt` and `tls.key`, or where else they are. Default: no TLS. */
  readonly tls?: ServerTls['source'] | undefined;
  readonly ready: Checks;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Runs all checks: `[+]name ok` or `[-]name failed: reason`. @returns 200 if all pass, else 503 */
export function probe(checks: Checks): { readonly status: 200 | 503; readonly text: string } {
  const results = Object.entries(checks).map(([name, check]) => ({ name, reason: check() }));
  const lines = results.map(({ name, reason }) =>
    reason === undefined ? `[+]${name} ok\n` : `[-]${name} failed: ${reason}\n`,
  );
  const isReady = results.every(({ reason }) => reason === undefined);
  return { status: isReady ? 200 : 503, text: `${lines.join('')}${isReady ? 'ok' : 'not ready'}\n` };
}

/** Starts health and metrics. @throws ServingError for the address or the TLS files */
export function startHealth(options: HealthOptions): Promise<RunningServer> {
  return startServer({
    listen: options.listen,
    ...(options.tls !== undefined && { tls: { source: options.tls } }),
    log: options.log,
    handler: (request, response) => {
      answer(request, response, options).catch((error: unknown) => {
        options.log.error({ err: error }, 'answering a probe or scrape failed');
        response.destroy();
      });
    },
  });
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: HealthOptions,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.writeHead(405, { allow: 'GET, HEAD' }).end();
    return;
  }
  const path = (request.url ?? '').split('?', 1)[0];
  if (path === '/healthz') {
    send(response, 200, 'ok\n');
  } else if (path === '/readyz') {
    const { status, text } = probe(options.ready);
    send(response, status, text);
  } else if (path === '/metrics') {
    send(response, 200, await options.metrics.render(), options.metrics.contentType);
  } else {
    send(response, 404, 'not found; use /healthz, /readyz or /metrics\n');
  }
}

function send(
  response: ServerResponse,
  status: number,
  text: string,
  type = 'text/plain; charset=utf-8',
): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) }).end(text);
}
