/** Differences between containerd and the agent in one case. */
import type { Observed, Visit } from './observed.ts';

/** What can differ, in order: after a difference in `hosts` the next ones mean nothing. */
export type DifferenceKind =
  'hosts' | 'redirects' | 'authorization' | 'headers' | 'tokens' | 'outcome' | 'digest';

export interface Difference {
  readonly kind: DifferenceKind;
  readonly containerd: string;
  readonly agent: string;
}

export function differences(containerd: Observed, agent: Observed): Difference[] {
  const found: Difference[] = [];
  const add = (kind: DifferenceKind, theirs: string, ours: string): void => {
    if (theirs !== ours) found.push({ kind, containerd: theirs, agent: ours });
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
