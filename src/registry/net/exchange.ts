/**
 * One HTTP exchange with everything around it that protects the other side: a place at the host's gate, the breaker's leave,
 * and the trace for `inspect --verbose`.
 */
import type { Clock } from '../../async/clock.ts';
import { type CircuitBreaker } from './circuit-breaker.ts';
import type { HostSemaphore } from '../../async/semaphore.ts';
import { LeftAlone } from '../outcome.ts';
import type { Attempt } from '../lookup.ts';
import { shownUrl } from './request-url.ts';
import { retryAfter } from '../../http/retry-after.ts';
import { TransportError, transportError, type TransportFailure } from '../../http/transport-error.ts';
import type { HttpResponse, HttpRequest, HttpClient } from '../../http/client.ts';

/** What an exchange is made for. */
export interface Reason {
  readonly purpose: Attempt['purpose'];
  /** For people. */
  readonly credential: string;
  /** Identity of the credential: a rate limit counts for one of them, not for the host. */
  readonly credentialId: string;
  /** The namespace that a mirror is asked for: what it answers may be the fault of that registry, not its own. */
  readonly behind?: string;
  readonly trace?: ((attempt: Attempt) => void) | undefined;
}

export interface Exchanger {
  /** @throws TransportError, LeftAlone */
  send(request: HttpRequest, reason: Reason, signal: AbortSignal): Promise<HttpResponse>;
}

/** Who may have to be left alone, as the breaker knows them. */
interface Parties {
  readonly host: string;
  /** The host, or what a mirror serves of one registry: a registry that is dead must not take its mirror from the others. */
  readonly lane: string;
  /** The host with one credential. */
  readonly personal: string;
}

/** Failures that say nothing about the host's health: our own rules, our own patience, or the size of one answer. */
const neutral: ReadonlySet<TransportFailure> = new Set<TransportFailure>([
  'aborted',
  'refused-address',
  'too-large',
  'encoded',
  'invalid',
  'not-tls',
]);

export function createExchanger(parts: {
  readonly client: HttpClient;
  readonly gate: HostSemaphore;
  readonly breaker: CircuitBreaker;
  readonly clock: Clock;
}): Exchanger {
  const { client, gate, breaker, clock } = parts;

  function askLeave({ host, lane, personal }: Parties): void {
    const pause = breaker.wait(host);
    if (pause > 0) throw new LeftAlone(host, pause, false);
    const behind = lane === host ? 0 : breaker.wait(lane);
    if (behind > 0) {
      breaker.inconclusive(host);
      throw new LeftAlone(host, behind, false);
    }
    const limited = breaker.wait(personal);
    if (limited === 0) return;
    breaker.inconclusive(host);
    breaker.inconclusive(lane);
    throw new LeftAlone(host, limited, true);
  }

  function judge(answer: HttpResponse, { host, lane, personal }: Parties): void {
    const pause = retryAfter(answer.headers['retry-after']?.[0], clock.now());
    if (answer.status === 429) {
      breaker.succeeded(host);
      breaker.succeeded(lane);
      if (pause === undefined) breaker.inconclusive(personal);
      else breaker.pause(personal, pause);
      return;
    }
    breaker.succeeded(personal);
    if (lane !== host || answer.status < 500) breaker.succeeded(host);
    if (answer.status < 500) breaker.succeeded(lane);
    else breaker.failed(lane);
    if (answer.status === 503 && pause !== undefined) breaker.pause(lane, pause);
  }

  return {
    send: async (request, reason, signal) => {
      const { host } = request.url;
      const lane = reason.behind === undefined ? host : `${host} for ${reason.behind}`;
      const parties = { host, lane, personal: `${host} ${reason.credentialId}` };
      const leave = await enter(gate, parties, signal);
      const started = clock.monotonic();
      const trace = (result: { status: number } | { problem: string }): void =>
        reason.trace?.({
          method: request.method,
          url: shownUrl(request.url),
          purpose: reason.purpose,
          credential: reason.credential,
          ...result,
          durationMs: clock.monotonic() - started,
        });
      try {
        askLeave(parties);
        const answer = await client.send(request, signal);
        judge(answer, parties);
        trace({ status: answer.status });
        return answer;
      } catch (error) {
        if (error instanceof LeftAlone) throw error;
        const failed = transportError(error, host);
        breaker.inconclusive(parties.personal);
        breaker.inconclusive(lane);
        if (neutral.has(failed.failure)) breaker.inconclusive(host);
        else breaker.failed(host);
        trace({ problem: failed.message });
        throw failed;
      } finally {
        leave();
      }
    },
  };
}

async function enter(gate: HostSemaphore, { host, lane }: Parties, signal: AbortSignal): Promise<() => void> {
  try {
    return await gate.enter(host, signal, lane);
  } catch (error) {
    throw new TransportError('aborted', host, 'given up while waiting for other requests', error);
  }
}
