/** Differences as text: grouped, each group with its smallest example. */
import type { Difference, Compared } from './rules.ts';

export interface Unexplained {
  readonly about: Compared;
  readonly difference: Difference;
}

export function report(unexplained: readonly Unexplained[]): string {
  const groups = Map.groupBy(unexplained, ({ difference: { kind, containerd, agent } }) =>
    kind === 'outcome' ? `outcome, containerd: ${containerd}, agent: ${agent}` : kind,
  );
  return [...groups]
    .map(([group, members]) => {
      const [smallest] = members.map(example).sort((one, other) => one.length - other.length);
      return `${group}: ${members.length}\n${smallest}`;
    })
    .join('\n');
}

/** The case, the behavior of the hosts that got requests, and the requests of both sides. */
function example({ about, difference }: Unexplained): string {
  const { behaviors, ...one } = about.case;
  const requests = [...about.containerd.requests, ...about.agent.requests];
  const hosts = new Set(requests.map(({ host }) => host.replace(/:443$/, '')));
  const behaviorsOfHosts = Object.fromEntries([...hosts].map((host) => [host, behaviors.get(host)]));
  const sides = { containerd: about.containerd, agent: about.agent };
  return JSON.stringify({ difference, case: one, behaviors: behaviorsOfHosts, ...sides }, shortened, 2);
}

function shortened(_key: string, value: unknown): unknown {
  return typeof value === 'string' && value.includes('-----BEGIN') ? '(PEM)' : value;
}
