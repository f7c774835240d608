/**
 * Differences between containerd and the agent in one case, and the intended ones, which
 * `docs/internals/deviations.md` explains by name. A difference without a rule is a defect.
 */
import type { Case } from './case.ts';
import type { Observed, Visit } from './observed.ts';
import type { Behavior } from './registry.ts';
import type { Difference } from './tally.ts';

export interface Rule {
  readonly name: string;
  readonly kinds: readonly DifferenceKind[];
  readonly explains: (about: Compared, kind: DifferenceKind) => boolean;
}

export interface Compared {
  readonly case: Case;
  readonly containerd: Observed;
  readonly agent: Observed;
}

/** Requests omitted on both sides before the comparison (`observed.ts`), by their names in the docs. */
export const leftOut = ['one-request', 'no-second-fetch', 'no-layers', 'no-retries'] as const;

/** Consequences of going to the next host. */
const whatFollows: readonly DifferenceKind[] = ['hosts', 'redirects', 'tokens', 'outcome', 'digest'];

export const rules: readonly Rule[] = [
  {
    name: 'configuration-that-cannot-be-used',
    kinds: ['hosts', 'outcome'],
    explains: ({ containerd }) => containerd.outcome === 'no-runtime',
  },
  {
    name: 'platform-of-single-manifests',
    kinds: ['outcome'],
    explains: ({ case: { image }, containerd, agent }) =>
      image === 'single-other' && containerd.outcome === 'found' && agent.outcome === 'no-platform',
  },
  {
    name: 'no-credentials-after-redirects',
    kinds: whatFollows,
    explains: (about, kind) =>
      concerned(kind, about).some(([theirs]) =>
        theirs.redirected.some(({ status, authorization }) => status === 401 || authorization !== 'none'),
      ),
  },
  {
    name: 'guarded-redirects',
    kinds: whatFollows,
    explains: (about, kind) =>
      concerned(kind, about).some(([theirs, ours]) => ours.redirected.length < theirs.redirected.length),
  },
  {
    name: 'guarded-realms',
    kinds: [...whatFollows, 'authorization'],
    explains: (about, kind) =>
      concerned(kind, about).some(([{ where }]) => behaviorAt(where, about)?.auth === 'bearer-plain-realm'),
  },
  {
    name: 'headers-of-the-default-directory',
    kinds: ['headers', 'tokens', 'authorization', 'outcome'],
    explains: ({ case: { hosts, domain }, agent }) =>
      Object.entries(hosts).some(([path, text]) => path.includes('/_default/') && text.includes('header')) &&
      agent.visits.some(({ where, headers }) => !headers.includes('x-test') && isDefaultHost(where, domain)),
  },
  {
    name: 'logins-of-hosts-files-stay-with-their-host',
    kinds: ['authorization', 'tokens', 'outcome', 'hosts'],
    explains: (about, kind) =>
      concerned(kind, about).some(
        ([{ where, authorizations }, ours]) =>
          behaviorAt(where, about)?.auth === 'bearer-elsewhere' &&
          authorizations[0] === 'basic puller' &&
          ours.authorizations[0] === 'basic puller',
      ),
  },
  {
    name: 'next-host-after-a-bad-document',
    kinds: whatFollows,
    explains: (about, kind) =>
      concerned(kind, about).some(([{ where, redirected }]) =>
        [where, ...redirected.map((target) => target.where)].some((url) => isBad(behaviorAt(url, about))),
      ),
  },
  {
    name: 'documents-of-the-host-that-resolved',
    kinds: ['outcome'],
    explains: ({ case: { behaviors }, containerd }) =>
      containerd.visits.at(-1)?.statuses.at(-1) === 200 &&
      containerd.requests.some(({ host }) => isBad(behaviors.get(host))),
  },
  {
    name: 'remembered-challenges',
    kinds: ['authorization', 'hosts'],
    explains: ({ containerd, agent }) =>
      agent.visits.every(({ where, authorizations }, index) => {
        const theirs = containerd.visits[index];
        // After a refused token containerd skips the next entry for the same host.
        if (!theirs) return containerd.visits.some((earlier) => hostOf(earlier.where) === hostOf(where));
        if (theirs.where !== where) return false;
        return (
          isEndOf(authorizations, theirs.authorizations) || isEndOf(theirs.authorizations, authorizations)
        );
      }),
  },
  {
    name: 'no-manifests-under-blobs',
    kinds: ['hosts'],
    explains: ({ case: { by }, containerd, agent }) =>
      by !== 'tag' &&
      agent.visits.every(({ where }, index) => containerd.visits[index]?.where === where) &&
      containerd.visits.slice(agent.visits.length).every(isConnection),
  },
  {
    name: 'absent-only-if-the-origin-lacks-it',
    kinds: ['outcome'],
    explains: ({ containerd, agent }) =>
      containerd.outcome === 'absent' && isRefused(agent) && !isAbsentAt(agent.visits.at(-1)),
  },
  {
    name: 'error-of-several',
    kinds: ['outcome'],
    explains: ({ case: about, containerd, agent }) =>
      hasMirrors(about) && failed(containerd) && (isRefused(agent) || lastHostLacks(agent)),
  },
];

/** The rule that explains a difference; `undefined`: a defect. */
export function ruleFor({ kind }: Difference<DifferenceKind>, about: Compared): Rule | undefined {
  return rules.find(({ kinds, explains }) => kinds.includes(kind) && explains(about, kind));
}

/** The visits that may cause a difference: the last common one, or all for kinds that need equal hosts. */
function concerned(kind: DifferenceKind, { containerd, agent }: Compared): [Visit, Visit][] {
  const both = containerd.visits.flatMap((theirs, index): [Visit, Visit][] => {
    const ours = agent.visits[index];
    return ours ? [[theirs, ours]] : [];
  });
  const first = both.findIndex(([theirs, ours]) => theirs.where !== ours.where);
  const common = first === -1 ? both : both.slice(0, first);
  return kind === 'redirects' || kind === 'tokens' || kind === 'authorization' ? common : common.slice(-1);
}

function behaviorAt(url: string, { case: { behaviors } }: Compared): Behavior | undefined {
  return behaviors.get(hostOf(url));
}

/** Of a URL, or of a connection without a request. */
function hostOf(where: string): string {
  return URL.parse(where)?.host || where.replace(/: .*$/, '');
}

function isBad(behavior: Behavior | undefined): boolean {
  const { answer } = behavior ?? {};
  return answer === 'get-500' || answer === 'cut' || answer === 'forged';
}

/** Hosts that no file names: the domain itself, or Docker Hub's. */
function isDefaultHost(where: string, domain: string): boolean {
  const host = hostOf(where);
  return host === domain.toLowerCase() || (host === 'registry-1.docker.io' && domain.endsWith('docker.io'));
}

/** There are other hosts than the domain's own. */
function hasMirrors({ hosts, configuration }: Case): boolean {
  return (
    Object.keys(hosts).length > 0 ||
    Object.values(configuration).some((text) => text.includes('.registry.mirrors.'))
  );
}

function isConnection({ statuses }: Visit): boolean {
  return statuses.every((status) => status === 'dropped');
}

function isEndOf(end: readonly string[], whole: readonly string[]): boolean {
  return end.length > 0 && end.join() === whole.slice(-end.length).join();
}

/** The host, or its redirect target, does not have the image. */
function isAbsentAt(visit: Visit | undefined): boolean {
  return (visit?.redirected.at(-1)?.status ?? visit?.statuses.at(-1)) === 404;
}

/** The last host may have said so as an earlier one, and be unreachable with the TLS settings of the last. */
function lastHostLacks({ visits }: Observed): boolean {
  const last = visits.at(-1);
  return visits.some(
    (each) => last !== undefined && hostOf(each.where) === hostOf(last.where) && isAbsentAt(each),
  );
}

function failed(observed: Observed): boolean {
  return isRefused(observed) || observed.outcome === 'absent';
}

/** No host served the image, for another reason than its absence. */
function isRefused({ outcome }: Observed): boolean {
  return outcome === 'denied' || outcome === 'unavailable' || outcome === 'broken';
}

/** What can differ, in order: after a difference in `hosts` the next ones mean nothing. */
export type DifferenceKind =
  'hosts' | 'redirects' | 'authorization' | 'headers' | 'tokens' | 'outcome' | 'digest';

export function differences(containerd: Observed, agent: Observed): Difference<DifferenceKind>[] {
  const found: Difference<DifferenceKind>[] = [];
  const add = (kind: DifferenceKind, theirs: string, ours: string): void => {
    if (theirs !== ours) found.push({ kind, theirs, ours });
  };
  const lines = (visits: readonly Visit[], line: (visit: Visit) => string): string =>
    visits.map(line).join('\n');
  add('hosts', lines(containerd.visits, whereOf), lines(agent.visits, whereOf));
  if (found.length === 0) {
    add('redirects', lines(containerd.visits, redirectsOf), lines(agent.visits, redirectsOf));
    add('authorization', lines(containerd.visits, authorizationOf), lines(agent.visits, authorizationOf));
    add('headers', lines(containerd.visits, headersOf), lines(agent.visits, headersOf));
    add('tokens', containerd.tokens.join('\n'), agent.tokens.join('\n'));
  }
  add('outcome', containerd.outcome, agent.outcome);
  if (containerd.outcome === 'found' && agent.outcome === 'found')
    add('digest', containerd.digest, agent.digest);
  return found;
}

const whereOf = ({ where }: Visit): string => where;
const redirectsOf = ({ where, redirected }: Visit): string =>
  `${where}: ${redirected.map((target) => `${target.where} ${target.authorization}`).join(', ')}`;
const authorizationOf = ({ where, authorizations }: Visit): string =>
  `${where}: ${authorizations.join(', ')}`;
const headersOf = ({ where, headers }: Visit): string => `${where}: ${headers}`;
