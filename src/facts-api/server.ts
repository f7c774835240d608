/**
 * The controller's server for remote `explain` and `report`: each request gets the image facts of one pod, as
 * the controller finds them with the agents' credentials. Every replica serves it. Callers come through the
 * API server's Service proxy, or directly from any pod, so each request is checked (`callers.ts`).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { FairSemaphore, Overloaded } from '../async/fair-semaphore.ts';
import type { Clock } from '../async/clock.ts';
import { RateLimiters } from '../async/rate-limiter.ts';
import type { FactsOfPod } from '../cluster/facts-of-pod.ts';
import type { ImageFacts } from '../images/facts/facts.ts';
import type { KubeClient } from '../kube/api/client.ts';
import { InvalidDocument } from '../http/json.ts';
import { KubeError } from '../kube/api/errors.ts';
import { publicFacts } from '../placement/rules/images/unknown.ts';
import { BodyError, readBody, BodyBudget } from '../serving/body.ts';
import { startServer, type RunningServer } from '../serving/server.ts';
import { fixedTls, type TlsSource } from '../serving/tls-files.ts';
import type { Log } from '../telemetry/log.ts';
import { counter, type Metrics } from '../telemetry/metrics.ts';
import { issueAuthority, issueLeaf } from '../certificates/issue.ts';
import { createCallers, Refused } from './callers.ts';
import {
  factsPath,
  InvalidRequest,
  maxBodyBytes,
  parseImagesRequest,
  type ImagesRequest,
} from './request.ts';

const factsRequestOutcomes = ['answered', 'refused', 'invalid', 'overloaded', 'failed'] as const;
type FactsRequestOutcome = (typeof factsRequestOutcomes)[number];

export const factsRequests = counter(
  'archwright_controller_facts_requests_total',
  'Requests of `explain` and `report`. `refused`: the caller is unknown or has no right.',
  { outcome: factsRequestOutcomes },
);

export interface FactsServerOptions {
  readonly listen: string;
  readonly client: KubeClient;
  readonly factsOfPod: FactsOfPod;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** A report has 16 requests in flight. A busy namespace gets a third of the places; agents are fair too. */
const lookups = { places: 48, maxWaiting: 192 };
/** Images of one namespace. A report of 5,000 kinds of pods with three known images each takes 100 s. */
const rate = { perSecond: 150, burst: 600 };
const maxRates = 1000;
/** Bodies of all requests in flight. */
const maxBodies = 8 * 1024 * 1024;
/** Longer than any request waits and takes. */
const requestLimitMs = 90_000;
const bodyTimeoutMs = 10_000;
/** The API server opens one per request in flight. Strangers may connect too; each takes 50 KiB. */
const maxConnections = 256;

interface Answer {
  readonly outcome: FactsRequestOutcome;
  readonly status: number;
  readonly body: object;
}

/** @throws ServingError if the address cannot be used */
export async function startFactsServer(options: FactsServerOptions): Promise<RunningServer> {
  const { listen, log, metrics } = options;
  const answerTo = createAnswers(options);
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const gone = new AbortController();
    response.once('close', () => gone.abort(new Error('the client disconnected')));
    const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(requestLimitMs)]);
    const { outcome, status, body } = await answerTo(request, signal);
    metrics.counter(factsRequests, { outcome }).inc();
    const text = JSON.stringify(body);
    if (!response.destroyed)
      response
        .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
        .end(text);
  };
  return startServer({
    listen,
    tls: { source: await ephemeralTls(options.clock) },
    log,
    limits: { maxConnections, stalledMs: requestLimitMs },
    handler: (request, response) => void handle(request, response),
  });
}

/** Longer than any process runs. */
const validMs = 10 * 365 * 86_400_000;

/**
 * Only this process has this certificate. The API server's proxy verifies none of pods and Services
 * (kubernetes pkg/controlplane/apiserver, `proxyTLSClientConfig`). TLS keeps tokens from passive listeners.
 */
async function ephemeralTls(clock: Pick<Clock, 'now'>): Promise<TlsSource> {
  const validity = { from: clock.now(), to: clock.now() + validMs };
  const authority = await issueAuthority(validity);
  const name = 'archwright-controller';
  const { certificate, key } = await issueLeaf(
    authority,
    { commonName: name, names: [name], usage: 'server' },
    validity,
  );
  return fixedTls({ cert: certificate.pem, key });
}

function createAnswers(options: FactsServerOptions) {
  const { clock, log, factsOfPod } = options;
  const checkCaller = createCallers(options);
  const places = new FairSemaphore(lookups);
  const rates = new RateLimiters({ ...rate, clock }, maxRates);
  const bodies = new BodyBudget(maxBodies);

  async function lookUp(query: ImagesRequest, signal: AbortSignal): Promise<readonly ImageFacts[]> {
    const { namespace, images, pullSecrets: names, serviceAccount, deadlineMs, maxAgeMs } = query;
    const leave = await places.enter(namespace, signal);
    try {
      await rates.get(namespace).take(signal, Math.max(1, images.length));
      const found = await factsOfPod({
        uses: images.map((image) => ({ ...image, usedBy: [], volumeOnly: false })),
        namespace,
        pullSecrets: names.length > 0 ? { names } : { names, serviceAccount },
        serviceAccount: { namespace, name: serviceAccount },
        budgetMs: deadlineMs,
        ...(maxAgeMs !== undefined && { maxAgeMs }),
      });
      return [...found.values()];
    } finally {
      leave();
    }
  }

  return async (request: IncomingMessage, signal: AbortSignal): Promise<Answer> => {
    if (request.url !== factsPath || request.method !== 'POST')
      return failure('invalid', 404, `there is only POST ${factsPath}`);
    const share = bodies.open();
    try {
      const bytes = await readBody(request, { maxBytes: maxBodyBytes, timeoutMs: bodyTimeoutMs, share });
      const query = parseImagesRequest(bytes);
      const { token, namespace } = query;
      const peer = request.socket.remoteAddress ?? '';
      const { username, seesDetails } = await checkCaller(token, namespace, peer, signal);
      const found = await lookUp(query, signal);
      const facts = seesDetails ? found : found.map(publicFacts);
      log.debug({ caller: username, namespace }, 'image facts were sent');
      return { outcome: 'answered', status: 200, body: { facts } };
    } catch (error) {
      return failureOf(error, signal, log);
    } finally {
      share.release();
    }
  };
}

function failureOf(error: unknown, signal: AbortSignal, log: Log): Answer {
  if (error instanceof Refused) {
    log.debug({ reason: error.message }, 'a caller was refused');
    return failure('refused', 403, `archwright: ${error.message}`);
  }
  if (error instanceof InvalidRequest || error instanceof InvalidDocument)
    return failure('invalid', 400, `archwright: ${error.message}`);
  if (error instanceof BodyError) {
    const status = error.code === 'too-large' ? 413 : error.code === 'overloaded' ? 429 : 408;
    return failure(status === 429 ? 'overloaded' : 'invalid', status, `archwright: ${error.message}`);
  }
  if (error instanceof Overloaded) return failure('overloaded', 429, `archwright: ${error.message}`);
  if (signal.aborted) return failure('failed', 503, 'archwright: the request took too long');
  if (error instanceof KubeError)
    log.warn({ err: error }, 'the caller of a request for image facts could not be checked');
  else log.error({ err: error }, 'a request for image facts failed unexpectedly');
  const message =
    'archwright: the caller could not be checked, or the lookup failed; see the log of the controller';
  return failure('failed', 503, message);
}

/** The API server's form of an error: its clients show the message. */
function failure(outcome: FactsRequestOutcome, code: number, message: string): Answer {
  const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code };
  return { outcome, status: code, body };
}
