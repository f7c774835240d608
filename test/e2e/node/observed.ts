/**
 * One side's observations in comparable terms: hosts with manifest requests, in order, with authorization;
 * token requests; the outcome. `rules.ts` lists other requests, which each side sends in its own way.
 */
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import type { Pulled } from './cri.ts';
import type { Recorded } from './registry.ts';

/** Requests to one host that follow each other. */
export interface Visit {
  /** `scheme://host/path` with `?ns=` where it was sent; for a connection without a request the host. */
  readonly where: string;
  /** Authorization of each request, without repetitions. */
  readonly authorizations: readonly string[];
  readonly headers: string;
  /** Statuses; shown, not compared. */
  readonly statuses: readonly (number | 'dropped')[];
  /** Targets of its redirects, and the authorization that they got. */
  readonly redirected: readonly Redirected[];
}

export interface Redirected {
  readonly where: string;
  readonly authorization: string;
  readonly status: number | 'dropped';
}

/** `no-runtime`: containerd runs without its CRI plugin. */
export type Outcome = 'found' | 'no-platform' | 'denied' | 'absent' | 'broken' | 'unavailable' | 'no-runtime';
type Result = Readonly<Record<'digest' | 'message', string>> & { readonly outcome: Outcome };

export interface Observed extends Result {
  readonly visits: readonly Visit[];
  /** `realm user service scopes`, in order, without repetitions. */
  readonly tokens: readonly string[];
  readonly requests: readonly Recorded[];
}

export function observe(requests: readonly Recorded[], object: string, result: Result): Observed {
  const resolving = untilResolved(requests, object);
  const visits = visitsOf(resolving, object);
  return { ...result, visits, tokens: tokensOf(resolving), requests: [...requests] };
}

/** The requests that resolve the reference: up to the first success. */
function untilResolved(requests: readonly Recorded[], object: string): Recorded[] {
  const first = requests.findIndex(
    ({ kind, object: requested, status }) => kind === 'manifests' && requested === object && status === 200,
  );
  return requests.slice(0, first === -1 ? requests.length : first + 1);
}

function visitsOf(requests: readonly Recorded[], object: string): Visit[] {
  const visits: Growing[] = [];
  let leadsTo = '';
  for (const request of requests) {
    if (request.kind !== 'connection' && (request.kind !== 'manifests' || request.object !== object))
      continue;
    const { authorization, headers, status } = request;
    const where = whereOf(request);
    const last = visits.at(-1);
    if (last?.where === where && last.headers === headers) {
      if (last.authorizations.at(-1) !== authorization) last.authorizations.push(authorization);
      last.statuses.push(status);
    } else if (last && request.host.replace(/:443$/, '') === leadsTo && last.where !== where) {
      const seen = last.redirected.find(
        (target) => target.where === where && target.authorization === authorization,
      );
      if (!seen) last.redirected.push({ where, authorization, status });
    } else {
      visits.push({ where, headers, authorizations: [authorization], statuses: [status], redirected: [] });
    }
    if (request.kind !== 'connection') leadsTo = request.leadsTo;
  }
  return visits;
}

interface Growing extends Visit {
  readonly authorizations: string[];
  readonly statuses: (number | 'dropped')[];
  readonly redirected: Redirected[];
}

function whereOf({ kind, scheme, host, path, ns }: Recorded): string {
  if (kind === 'connection') return `${host.replace(/:443$/, '')}: a connection without a request`;
  return `${scheme}://${host}${path}${ns === '' ? '' : `?ns=${ns}`}`;
}

function tokensOf(requests: readonly Recorded[]): string[] {
  const lines = requests
    .filter(({ kind }) => kind === 'token')
    .map(({ scheme, host, tokenRequest, headers }) =>
      `${scheme}://${host} ${tokenRequest} ${headers}`.trim(),
    );
  return lines.filter((line, index) => lines.indexOf(line) === index);
}

/** The outcome of a pull by containerd's error text; CRI has codes for two of them only. */
export function outcomeOfPull({ digest, error }: Pulled): Result {
  if (!error) return { outcome: 'found', digest: digest ?? '', message: '' };
  const { message } = error;
  return { outcome: pullOutcome(message), digest: '', message };
}

function pullOutcome(message: string): Outcome {
  if (message.includes('unknown service')) return 'no-runtime';
  if (message.includes('no match for platform')) return 'no-platform';
  if (
    /pull access denied|authorization failed|401 Unauthorized|403 Forbidden|insufficient_scope/.test(message)
  ) {
    return 'denied';
  }
  if (/unexpected commit digest|failed size validation/.test(message)) return 'broken';
  if (message.endsWith(': not found')) return 'absent';
  return 'unavailable';
}

export function outcomeOfFacts(facts: ImageFacts): Result {
  const { error, platforms, digest = '' } = facts;
  if (error)
    return {
      outcome: outcomesOfCodes[error.code] ?? 'unavailable',
      digest: '',
      message: `${error.code}: ${error.message}`,
    };
  const here = platforms.some(({ os, architecture }) => os === 'linux' && architecture === 'amd64');
  return { outcome: here ? 'found' : 'no-platform', digest, message: '' };
}

type FactsErrorCode = NonNullable<ImageFacts['error']>['code'];

const outcomesOfCodes: Readonly<Partial<Record<FactsErrorCode, Outcome>>> = {
  unauthorized: 'denied',
  forbidden: 'denied',
  'not-found': 'absent',
  'digest-mismatch': 'broken',
  'unsupported-media-type': 'broken',
  'not-an-image': 'broken',
  'too-large': 'broken',
};
