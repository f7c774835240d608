/**
 * Differences between CRI-O and the agent in one case, and the intended ones, which
 * `docs/internals/deviations.md` explains by name. A difference without a rule is a defect.
 */
import type { Case } from './generate.ts';
import type { Observed, Visit } from './observed.ts';
import type { Difference } from '../node/tally.ts';

export interface Compared {
  readonly case: Case;
  readonly image: string;
  readonly crio: Observed;
  readonly agent: Observed;
  /** What the agent reports about files. */
  readonly problems: readonly string[];
}

/** What can differ, in order: after a difference in `registries` the next ones mean nothing. */
export type DifferenceKind = 'registries' | 'paths' | 'users' | 'outcome' | 'digest';

export interface Rule {
  readonly name: string;
  readonly kinds: readonly DifferenceKind[];
  readonly explains: (about: Compared) => boolean;
}

/** What is not compared, or no generated case has, by its name in the docs. */
export const leftOut = [
  'no-request-for-version-2',
  'manifest-by-head',
  'no-retries-of-crio',
  'http-only-without-tls',
  'no-namespaced-auth-files',
  'credential-helpers-of-crio',
  'identity-tokens-at-token-servers',
  'media-type-of-the-document',
  'entries-without-platform',
  'short-names-of-a-cluster',
] as const;

const all: readonly DifferenceKind[] = ['registries', 'paths', 'users', 'outcome', 'digest'];

export const rules: readonly Rule[] = [
  {
    name: 'one-registry-for-the-kubelets-credential',
    kinds: all,
    explains: ({ case: { domain, login }, crio, agent }) =>
      domain === '' &&
      Boolean(login?.username) &&
      crio.visits.some(({ host, user }, index) => {
        const ours = agent.visits[index];
        return host !== hub && (ours?.host !== host || ours.user !== user);
      }),
  },
  {
    name: 'remembered-challenges',
    kinds: ['registries'],
    explains: ({ crio, agent }) => {
      const again = crio.visits.slice(agent.visits.length);
      const isKnown = again.every(({ host }) => agent.visits.some((visit) => visit.host === host));
      return again.length > 0 && isKnown && agent.requests.at(-1)?.kind === 'token';
    },
  },
  {
    name: 'next-mirror-after-a-bad-document',
    kinds: ['registries', 'outcome'],
    explains: ({ case: { behaviors }, crio }) =>
      crio.outcome === 'failed' && behaviors.get(lastHost(crio))?.answer === 'forged',
  },
  {
    name: 'refused-addresses',
    kinds: all,
    explains: ({ case: { behaviors }, crio }) =>
      crio.visits.some(({ host }) => behaviors.get(hostOf(host))?.auth === 'bearer-plain-realm'),
  },
  {
    name: 'policy-before-requests',
    kinds: ['registries', 'outcome'],
    explains: ({ case: { domain, files }, crio, agent }) => {
      const policy = files['/etc/containers/policy.json'] ?? '';
      if (policy.includes('signedBy')) return crio.outcome === 'rejected';
      if (!policy.includes('"reject"')) return false;
      // Another candidate of a short name may be allowed, and one that fails for CRI-O may be rejected.
      const outcomes = agent.outcome === 'rejected' ? ['rejected', 'failed'] : [agent.outcome];
      if (agent.visits.length > 0) return domain === '' && outcomes.includes(crio.outcome);
      return crio.outcome !== 'found';
    },
  },
  {
    name: 'policy-that-is-missing',
    kinds: ['registries', 'outcome'],
    explains: ({ case: { files }, crio }) =>
      crio.outcome === 'failed' && files['/etc/containers/policy.json'] === undefined,
  },
  {
    name: 'configuration-at-once',
    kinds: ['registries', 'outcome'],
    explains: ({ crio, problems }) =>
      crio.message.startsWith('loading registries configuration') &&
      problems.some((problem) => problem.includes('/registries.conf')),
  },
  {
    name: 'platforms-of-the-first-candidate',
    kinds: ['outcome'],
    explains: ({ case: { domain }, crio, agent }) =>
      domain === '' && crio.outcome === 'failed' && agent.outcome === 'no-platform',
  },
  {
    name: 'platform-of-single-manifests',
    kinds: ['outcome'],
    explains: ({ case: { image }, crio, agent }) =>
      image === 'single-other' && crio.outcome === 'found' && agent.outcome === 'no-platform',
  },
];

const hub = 'https://registry-1.docker.io';

function hostOf(url: string): string {
  return url.replace(/^https?:\/\//, '');
}

function lastHost({ visits }: Observed): string {
  return hostOf(visits.at(-1)?.host ?? '');
}

/** The rule that explains a difference; `undefined`: a defect. */
export function ruleFor({ kind }: Difference<DifferenceKind>, about: Compared): Rule | undefined {
  return rules.find(({ kinds, explains }) => kinds.includes(kind) && explains(about));
}

export function differences(crio: Observed, agent: Observed): Difference<DifferenceKind>[] {
  const found: Difference<DifferenceKind>[] = [];
  const add = (kind: DifferenceKind, theirs: string, ours: string): void => {
    if (theirs !== ours) found.push({ kind, theirs, ours });
  };
  add(
    'registries',
    linesOf(crio.visits, ({ host }) => host),
    linesOf(agent.visits, ({ host }) => host),
  );
  if (found.length === 0) {
    // CRI-O sends no request for the manifest if its token server refuses.
    const urlOf = ({ host, path }: Visit): string => host + path;
    const theirs = crio.visits.filter(({ path }) => path !== '');
    const asked = new Set(theirs.map(urlOf));
    const ours = agent.visits.filter((visit) => asked.has(urlOf(visit)) || !isRefused(visit.statuses));
    add('paths', linesOf(theirs, urlOf), linesOf(ours, urlOf));
    const withUser = ({ host, user }: Visit): string => `${host} ${user}`;
    add('users', linesOf(crio.visits, withUser), linesOf(agent.visits, withUser));
  }
  add('outcome', crio.outcome, agent.outcome);
  if (crio.outcome === 'found' && agent.outcome === 'found') add('digest', crio.digest, agent.digest);
  return found;
}

function isRefused(statuses: Visit['statuses']): boolean {
  return statuses.every((status) => status === 401);
}

/** Equal lines that follow each other are one: a mirror may be the registry itself. */
function linesOf(visits: readonly Visit[], line: (visit: Visit) => string): string {
  const lines = visits.map(line);
  return lines.filter((each, index) => each !== lines[index - 1]).join('\n');
}
