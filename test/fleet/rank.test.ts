import { assert, nat, property, stringMatching, uniqueArray } from 'fast-check';
import t from 'tap';
import type { AgentAddress } from '../../src/fleet/discovery.ts';
import { Ranking } from '../../src/fleet/rank.ts';

const agentSets = uniqueArray(stringMatching(/^[a-z0-9-]{1,20}$/), { minLength: 1, maxLength: 20 }).map(
  (nodes) => nodes.map((node): AgentAddress => ({ url: `https://${node}:9443`, node })),
);
const rank = (repository: string, agents: readonly AgentAddress[]) => new Ranking(agents).order(repository);

const repositories = stringMatching(/^[a-z]{1,10}\/[a-z0-9/]{1,30}$/);

function named(count: number): AgentAddress[] {
  return Array.from({ length: count }, (_, index) => ({
    url: `https://10.0.0.${index + 1}:9443`,
    node: `node-${index + 1}`,
  }));
}

function ownersOf(keys: readonly string[], agents: readonly AgentAddress[]): (string | undefined)[] {
  return keys.map((key) => rank(key, agents)[0]?.node);
}

t.test('each agent is ranked once, independent of the order of the list', async (t) => {
  assert(
    property(agentSets, repositories, nat(), (agents, repository, turn) => {
      const ranked = rank(repository, agents);
      t.strictSame(new Set(ranked), new Set(agents));
      const at = turn % agents.length;
      const shuffled = [...agents.slice(at).reverse(), ...agents.slice(0, at)];
      return ranked.every((agent, index) => rank(repository, shuffled)[index] === agent);
    }),
    { numRuns: 100 },
  );
});

t.test('the owner is the agent with the first rank', async () => {
  assert(
    property(agentSets, repositories, (agents, repository) => {
      const ranking = new Ranking(agents);
      return ranking.owner(repository) === ranking.order(repository)[0];
    }),
    { numRuns: 100 },
  );
  t.equal(new Ranking([]).owner('r.example/app'), undefined);
});

t.test('only repositories of a removed agent get a new owner', async (t) => {
  const keys = Array.from({ length: 2000 }, (_, index) => `docker.io/team/app-${index}`);
  const agents = named(20);
  const before = ownersOf(keys, agents);
  const after = ownersOf(
    keys,
    agents.filter((agent) => agent.node !== 'node-7'),
  );
  const moved = keys.filter((_, index) => before[index] !== after[index]);
  t.strictSame(
    moved,
    keys.filter((_, index) => before[index] === 'node-7'),
  );
  t.ok(
    new Set(moved.map((key) => after[keys.indexOf(key)])).size > 10,
    'they are spread over the other agents',
  );
});

t.test('repositories are spread evenly', async (t) => {
  for (const [agentCount, keyCount] of [
    [2, 2000],
    [3, 3000],
    [20, 20_000],
    [100, 50_000],
  ] as const) {
    const keys = Array.from(
      { length: keyCount },
      (_, index) => `registry.example/team-${index % 7}/app-${index}`,
    );
    const counts = new Map<string | undefined, number>();
    for (const owner of ownersOf(keys, named(agentCount))) counts.set(owner, (counts.get(owner) ?? 0) + 1);
    const fair = keyCount / agentCount;
    t.equal(counts.size, agentCount);
    t.ok(
      Math.max(...counts.values()) < fair * 1.25,
      `most of ${agentCount}: ${Math.max(...counts.values())}`,
    );
    t.ok(
      Math.min(...counts.values()) > fair * 0.75,
      `least of ${agentCount}: ${Math.min(...counts.values())}`,
    );
  }
});

t.test('an agent keeps its repositories when its address changes, if its node is known', async (t) => {
  const agents = named(10);
  const moved = agents.map((agent, index) =>
    index === 3 ? { url: 'https://10.9.9.9:9443', node: 'node-4' } : agent,
  );
  const keys = Array.from({ length: 200 }, (_, index) => `quay.io/app-${index}`);
  t.strictSame(ownersOf(keys, agents), ownersOf(keys, moved));
});

t.test('without node names, agents are ranked by URL', async (t) => {
  const agents = [{ url: 'https://a:1' }, { url: 'https://b:1' }, { url: 'https://c:1' }];
  const owners = Array.from({ length: 100 }, (_, index) => rank(`quay.io/app-${index}`, agents)[0]?.url);
  t.equal(new Set(owners).size, 3);
  t.strictSame(rank('quay.io/app', []), []);
});
