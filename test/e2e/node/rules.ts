/**
 * Where the agent differs from containerd on purpose. `docs/deviations.md` explains each of them to people under the same name. A
 * difference that no rule explains is a fault.
 */
import type { Case } from './case.ts';
import type { Difference, DifferenceKind } from './compare.ts';
import type { Observed, Visit } from './observed.ts';
import type { Behavior } from './registry.ts';

export interface Rule {
  readonly name: string;
  /** Whether this difference of this case is one that the rule is about. */
  readonly explains: (difference: Difference, about: Compared) => boolean;
}

export interface Compared {
  readonly case: Case;
  readonly containerd: Observed;
  readonly agent: Observed;
}

/** What is left out on both sides before anything is compared (`observed.ts`). */
export const leftOut = ['one-get', 'no-second-fetch', 'no-layers', 'no-retries'] as const;

export const rules: readonly Rule[] = [
  {
    name: 'configuration-that-cannot-be-used',
    explains: (_, { containerd }) => containerd.outcome === 'no-runtime',
  },
  {
    name: 'platform-of-single-manifests',
    explains: ({ kind }, { case: { image }, containerd, agent }) =>
      kind === 'outcome' &&
      image === 'single-other' &&
      containerd.outcome === 'found' &&
      agent.outcome === 'no-platform',
  },
  {
    name: 'no-credentials-after-redirects',
    explains: ({ kind }, about) =>
      concerned(kind, about).some(([theirs]) => theirs.redirected.some(({ status }) => status === 401)),
  },
  {
    name: 'guarded-redirects',
    explains: ({ kind }, about) =>
      concerned(kind, about).some(
        ([theirs, ours]) => theirs.redirected.length > 0 && ours.redirected.length === 0,
      ),
  },
  {
    name: 'guarded-realms',
    explains: ({ kind }, about) =>
      concerned(kind, about).some(([{ where }]) => behaviorAt(where, about)?.auth === 'bearer-plain-realm'),
  },
  {
    name: 'headers-of-the-default-directory',
    explains: ({ kind }, { case: { hosts }, agent }) =>
      (kind === 'headers' || kind === 'tokens') &&
      Object.keys(hosts).some((path) => path.includes('/_default/')) &&
      agent.visits.some(({ headers }) => headers === ''),
  },
  {
    name: 'logins-of-hosts-files-stay-with-their-host',
    explains: ({ kind }, about) =>
      concerned(kind, about).some(
        ([{ where, authorizations }, ours]) =>
          behaviorAt(where, about)?.auth === 'bearer-elsewhere' &&
          authorizations[0] === 'basic puller' &&
          ours.authorizations[0] === 'basic puller',
      ),
  },
  {
    name: 'next-host-after-a-bad-document',
    explains: ({ kind }, about) =>
      concerned(kind, about).some(([{ where, redirected }]) =>
        [where, ...redirected.map((target) => target.where)].some((url) => isBadAt(url, about)),
      ),
  },
  {
    name: 'documents-of-the-host-that-resolved',
    explains: ({ kind }, about) =>
      kind === 'outcome' &&
      about.containerd.visits.at(-1)?.statuses.at(-1) === 200 &&
      about.containerd.requests.some(({ host }) =>
        badDocuments.has(about.case.behaviors.get(host)?.answer ?? 'image'),
      ),
  },
  {
    name: 'remembered-challenges',
    explains: ({ kind }, { containerd, agent }) =>
      kind === 'authorization' &&
      agent.visits.every(({ authorizations }, index) => {
        const theirs = containerd.visits[index]?.authorizations ?? [];
        return isEndOf(authorizations, theirs) || isEndOf(theirs, authorizations);
      }),
  },
  {
    name: 'no-manifests-under-blobs',
    explains: ({ kind }, { case: { by }, containerd, agent }) =>
      kind === 'hosts' &&
      by !== 'tag' &&
      agent.visits.every(({ where }, index) => containerd.visits[index]?.where === where) &&
      containerd.visits.slice(agent.visits.length).every(isConnection),
  },
  {
    name: 'absent-only-where-the-last-host-says-so',
    explains: ({ kind }, { containerd, agent }) =>
      kind === 'outcome' &&
      containerd.outcome === 'absent' &&
      isRefused(agent) &&
      agent.visits.at(-1)?.statuses.at(-1) !== 404,
  },
  {
    name: 'error-of-several',
    explains: ({ kind }, { case: about, containerd, agent }) =>
      kind === 'outcome' &&
      hasMirrors(about) &&
      isRefused(containerd) &&
      (isRefused(agent) || (agent.outcome === 'absent' && agent.visits.at(-1)?.statuses.at(-1) === 404)),
  },
];

/** HEAD works, GET does not, or gives something else. */
const badDocuments: ReadonlySet<Behavior['answer']> = new Set<Behavior['answer']>([
  'get-500',
  'cut',
  'forged',
]);

/** The visits that a difference may come from: the last before the ways part, or any where the hosts are the same. */
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
  return behaviors.get(URL.parse(url)?.host ?? '');
}

function isBadAt(url: string, about: Compared): boolean {
  const behavior = behaviorAt(url, about);
  return behavior !== undefined && badDocuments.has(behavior.answer);
}

/** There are other hosts than the namespace's own, asked or out of reach. */
function hasMirrors({ hosts, configuration }: Case): boolean {
  return (
    Object.keys(hosts).length > 0 || Object.values(configuration).some((text) => text.includes('.mirrors.'))
  );
}

function isConnection({ statuses }: Visit): boolean {
  return statuses.every((status) => status === 'dropped');
}

function isEndOf(end: readonly string[], whole: readonly string[]): boolean {
  return end.length > 0 && end.join() === whole.slice(-end.length).join();
}

/** Some host answered, and none gave the image. */
function isRefused({ outcome }: Observed): boolean {
  return outcome === 'denied' || outcome === 'unavailable' || outcome === 'broken';
}
