/** Which agents there are, and which one owns a repository: the same one for each webhook. */
import { assert, nat, property, stringMatching, uniqueArray } from 'fast-check';
import t from 'tap';
import {
  endpointSliceDiscovery,
  Ranking,
  staticDiscovery,
  type AgentAddress,
} from '../../src/fleet/discovery.ts';
import type { EndpointSlice } from '../../src/kube/api/objects.ts';
import type { Reflector } from '../../src/kube/watch/reflector.ts';
import { neverAborted } from '../support/never-aborted.ts';

t.test('a static list contains each agent once', async (t) => {
  const discovery = staticDiscovery(['https://a:1', 'https://b:2', 'https://A:1', 'https://[fd00::1]:1']);
  await discovery.ready(neverAborted);
  t.strictSame(
    discovery.current().map(({ url }) => url),
    ['https://a:1', 'https://b:2', 'https://[fd00::1]:1'],
  );
});

type Endpoint = NonNullable<EndpointSlice['endpoints']>[number];

function slice(endpoints: Endpoint[], change: Partial<EndpointSlice> = {}): EndpointSlice {
  return { addressType: 'IPv4', endpoints, ports: [{ name: 'api', port: 9443 }], ...change };
}

function endpoint(address: string, nodeName?: string, conditions?: Endpoint['conditions']): Endpoint {
  return {
    addresses: [address],
    ...(nodeName !== undefined && { nodeName }),
    ...(conditions && { conditions }),
  };
}

/** A watch with these slices, which never changes by itself. */
function discover(slices: readonly EndpointSlice[]) {
  const listeners: (() => void)[] = [];
  const watch: Pick<Reflector<EndpointSlice>, 'values' | 'ready' | 'onChange'> = {
    values: () => slices,
    ready: () => Promise.resolve(),
    onChange: (listener) => void listeners.push(listener),
  };
  return {
    discovery: endpointSliceDiscovery(watch, 'api'),
    change: () => listeners.forEach((each) => each()),
  };
}

const v4 = { url: 'https://10.0.0.1:9443' };
const v6 = { url: 'https://[fd00::1]:9443' };
const ipv6: Partial<EndpointSlice> = { addressType: 'IPv6' };

t.test('ready endpoints with the port are agents', async (t) => {
  const cases: [string, EndpointSlice[], AgentAddress[]][] = [
    ['none', [], []],
    ['ready', [slice([endpoint('10.0.0.1', 'n1', { ready: true })])], [{ ...v4, node: 'n1' }]],
    ['unset is ready', [slice([endpoint('10.0.0.1', 'n1', {})])], [{ ...v4, node: 'n1' }]],
    ['no conditions', [slice([endpoint('10.0.0.1')])], [v4]],
    ['not ready', [slice([endpoint('10.0.0.1', 'n1', { ready: false, serving: true })])], []],
    ['without an address', [slice([{ addresses: [] }])], []],
    ['no such port', [slice([endpoint('10.0.0.1')], { ports: [{ name: 'metrics', port: 1 }] })], []],
    ['a port without number', [slice([endpoint('10.0.0.1')], { ports: [{ name: 'api' }] })], []],
    ['without ports', [{ addressType: 'IPv4', endpoints: [endpoint('10.0.0.1')] }], []],
    ['of a Service without pods', [{ addressType: 'IPv4', endpoints: null, ports: null }], []],
    ['without endpoints', [{ addressType: 'IPv4', ports: [{ name: 'api', port: 1 }] }], []],
    ['names', [slice([endpoint('agent.example')], { addressType: 'FQDN' })], []],
    ['IPv6', [slice([endpoint('fd00::1', 'n1')], ipv6)], [{ ...v6, node: 'n1' }]],
    [
      'a node with both families counts once',
      [slice([endpoint('fd00::1', 'n1')], ipv6), slice([endpoint('10.0.0.1', 'n1')])],
      [{ ...v4, node: 'n1' }],
    ],
    ['an endpoint in two slices', [slice([endpoint('10.0.0.1')]), slice([endpoint('10.0.0.1')])], [v4]],
  ];
  for (const [name, slices, agents] of cases)
    t.strictSame(discover(slices).discovery.current(), agents, name);
});

t.test('discovery follows the watch', async (t) => {
  const slices = [slice([endpoint('10.0.0.1', 'n1')])];
  const { discovery, change } = discover(slices);
  let changes = 0;
  discovery.onChange(() => void (changes += 1));
  await discovery.ready(neverAborted);
  t.strictSame(discovery.current(), [{ url: 'https://10.0.0.1:9443', node: 'n1' }]);
  slices.push(slice([endpoint('10.0.0.2', 'n2')]));
  change();
  t.equal(discovery.current().length, 2);
  t.equal(changes, 1);
});

const agentsOf = (names: readonly string[]) =>
  names.map((node): AgentAddress => ({ url: `https://${node}:9443`, node }));
const named = (count: number) => agentsOf(Array.from({ length: count }, (_, index) => `node-${index + 1}`));
const repositoriesOf = (count: number) =>
  Array.from({ length: count }, (_, index) => `registry.example/team-${index % 7}/app-${index}`);
const ownersOf = (repositories: readonly string[], agents: readonly AgentAddress[]) => {
  const ranking = new Ranking(agents);
  return repositories.map((each) => ranking.owner(each)?.url);
};

t.test('the owner, the first in the order, does not depend on the order of the agents', async (t) => {
  const agents = uniqueArray(stringMatching(/^[a-z0-9-]{1,20}$/), { minLength: 1, maxLength: 20 });
  const repositories = stringMatching(/^[a-z]{1,10}\/[a-z0-9]{1,30}$/);
  assert(
    property(agents.map(agentsOf), repositories, nat(), (listed, repository, turn) => {
      const at = turn % listed.length;
      const shuffled = [...listed.slice(at).reverse(), ...listed.slice(0, at)];
      const owner = new Ranking(listed).owner(repository);
      const [first] = new Ranking(shuffled).order(repository);
      return owner !== undefined && owner === first;
    }),
    { numRuns: 300 },
  );
  t.equal(new Ranking([]).owner('r.example/app'), undefined);
});

t.test('only repositories of a removed agent get a new owner', async (t) => {
  const images = repositoriesOf(1000);
  const before = ownersOf(images, named(20));
  const [gone, ...rest] = named(20);
  const after = ownersOf(images, rest);
  const moved = images.flatMap((_, index) => (before[index] === after[index] ? [] : [index]));
  t.strictSame(
    moved,
    images.flatMap((_, index) => (before[index] === gone?.url ? [index] : [])),
  );
  t.ok(new Set(moved.map((index) => after[index])).size > 10, 'they are spread over the other agents');
});

t.test('repositories are spread evenly', async (t) => {
  for (const [agentCount, imageCount] of [
    [2, 500],
    [10, 3000],
  ] as const) {
    const owners = Map.groupBy(ownersOf(repositoriesOf(imageCount), named(agentCount)), (url) => url);
    const shares = [...owners.values()].map((own) => (own.length / imageCount) * agentCount);
    t.equal(shares.length, agentCount);
    t.ok(Math.max(...shares) < 1.25 && Math.min(...shares) > 0.75, shares.join(' '));
  }
});

t.test('an agent keeps its repositories when its address changes, if its node is known', async (t) => {
  const images = repositoriesOf(200);
  const agents = named(10);
  const moved = agents.map((agent, index) =>
    index === 3 ? { ...agent, url: 'https://10.9.9.9:9443' } : agent,
  );
  const [before, after] = [ownersOf(images, agents), ownersOf(images, moved)];
  t.strictSame(
    after.map((url) => (url === moved[3]?.url ? agents[3]?.url : url)),
    before,
  );
});
