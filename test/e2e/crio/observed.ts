/**
 * One side's observations in comparable terms: the registries in the order of the first request to each, with
 * the path of the manifest and the user that was presented; then the outcome. CRI-O begins with `/v2/` and takes
 * challenges from it; the agent begins with the manifest. So only what both must have is compared.
 */
import type { ImageFacts } from '../../../src/images/facts/facts.ts';
import type { Recorded } from '../node/registry.ts';
import type { Pulled } from './library.ts';

/** Requests to one registry that follow each other. */
export interface Visit {
  /** `scheme://host`. */
  readonly host: string;
  /** Path of the manifest; empty if there was no request for it. */
  readonly path: string;
  /** The last user that the registry or its token server got; empty without one. */
  readonly user: string;
  /** Statuses of the manifest; shown, not compared. */
  readonly statuses: readonly (number | 'dropped')[];
}

export type Outcome = 'found' | 'no-platform' | 'rejected' | 'failed';
type Result = Readonly<Record<'digest' | 'message', string>> & { readonly outcome: Outcome };

export interface Observed extends Result {
  readonly visits: readonly Visit[];
  readonly requests: readonly Recorded[];
}

export function observe(requests: readonly Recorded[], object: string, result: Result): Observed {
  return { ...result, visits: visitsOf(requests, object), requests: [...requests] };
}

/** Up to the first success. */
function visitsOf(requests: readonly Recorded[], object: string): Visit[] {
  const visits: { -readonly [Member in keyof Visit]: Visit[Member] }[] = [];
  for (const request of requests) {
    const { kind, scheme, authorization, status, tokenRequest } = request;
    const last = visits.at(-1);
    if (kind === 'token') {
      if (last) last.user = userIn(tokenRequest.split(' ', 1)[0]) || last.user;
      continue;
    }
    const isManifest = kind === 'manifests' && request.object === object;
    if (!isManifest && !(kind === 'other' && request.path === '/v2/')) continue;
    const host = `${scheme}://${request.host.replace(/:443$/, '')}`;
    const path = isManifest ? request.path : '';
    const isSame = last?.host === host && path !== '' && (last.path === path || last.path === '');
    const visit = isSame ? last : { host, path, user: '', statuses: [] };
    if (!isSame) visits.push(visit);
    visit.path ||= path;
    visit.user = userIn(/^(?:basic|bearer) (\S*)/.exec(authorization)?.[1]) || visit.user;
    if (isManifest) visit.statuses = [...visit.statuses, status];
    if (isManifest && status === 200) break;
  }
  return visits;
}

/** An empty user name is nobody: CRI-O answers a Basic challenge also without a credential. */
function userIn(name: string | undefined): string {
  return name === undefined || name === 'nobody' || name === '(wrong)' ? '' : name;
}

export function outcomeOfPull({ digest, error }: Pulled): Result {
  if (error === '') return { outcome: 'found', digest, message: '' };
  const outcome = error.includes('no image found in') ? 'no-platform' : 'failed';
  const isRejected = /rejected by policy|signature/i.test(error);
  return { outcome: isRejected ? 'rejected' : outcome, digest: '', message: error };
}

export function outcomeOfFacts({ error, platforms, digest = '' }: ImageFacts): Result {
  if (error !== undefined) {
    const outcome = / rejects .* on this node$/.test(error.message) ? 'rejected' : 'failed';
    return { outcome, digest: '', message: `${error.code}: ${error.message}` };
  }
  const here = platforms.some(({ os, architecture }) => os === 'linux' && architecture === 'amd64');
  return { outcome: here ? 'found' : 'no-platform', digest, message: '' };
}
