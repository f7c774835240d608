/**
 * Where the agent differs from containerd on purpose. `docs/deviations.md` explains each of them to people under the same name. A
 * difference that no rule explains is a fault.
 */
import type { Case } from './case.ts';
import type { Difference } from './compare.ts';
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
    name: 'platform-of-single-manifests',
    explains: ({ kind }, { case: { image }, containerd, agent }) =>
      kind === 'outcome' &&
      image === 'single-other' &&
      containerd.outcome === 'found' &&
      agent.outcome === 'no-platform',
  },
  {
    name: 'no-credentials-after-redirects',
    explains: (_, about) => {
      const [theirs] = parting(about);
      return theirs !== undefined && theirs.redirected.some(({ authorization }) => authorization !== 'none');
    },
  },
  {
    name: 'guarded-redirects',
    explains: (_, about) => {
      const [theirs, ours] = parting(about);
      return theirs !== undefined && theirs.redirected.length > 0 && ours?.redirected.length === 0;
    },
  },
  {
    name: 'next-host-after-a-bad-document',
    explains: (_, about) => {
      const [theirs] = parting(about);
      const behavior = theirs && behaviorAt(theirs, about);
      return behavior !== undefined && badDocuments.has(behavior.answer);
    },
  },
  {
    name: 'origin-that-nobody-reaches',
    explains: ({ kind }, { containerd, agent }) =>
      kind === 'outcome' && containerd.outcome === 'absent' && agent.outcome === 'unavailable',
  },
  {
    name: 'error-of-several',
    explains: ({ kind }, { containerd, agent }) =>
      kind === 'outcome' && containerd.visits.length > 1 && isRefused(containerd) && isRefused(agent),
  },
];

/** HEAD works, GET does not, or gives something else. */
const badDocuments: ReadonlySet<Behavior['answer']> = new Set<Behavior['answer']>([
  'get-500',
  'cut',
  'forged',
]);

/** The last visit that both sides made before they went different ways, as each of them made it. */
function parting({ containerd, agent }: Compared): [Visit | undefined, Visit | undefined] {
  const { visits } = containerd;
  const first = visits.findIndex(({ where }, index) => agent.visits[index]?.where !== where);
  const last = (first === -1 ? visits.length : first) - 1;
  return [visits[last], agent.visits[last]];
}

function behaviorAt({ where }: Visit, about: Compared): Behavior | undefined {
  return about.case.behaviors.get(URL.parse(where)?.host ?? '');
}

/** Some host answered, and none gave the image. */
function isRefused({ outcome }: Observed): boolean {
  return outcome === 'denied' || outcome === 'unavailable' || outcome === 'broken';
}
