/** Which agent a lookup asks: the owner of the image's repository, the same one for each webhook. */
import { assert, asyncProperty, nat, stringMatching, uniqueArray } from 'fast-check';
import t from 'tap';
import type { AgentAddress } from '../../src/fleet/discovery.ts';
import { ownersOf } from './fleet-setup.ts';

const agentsOf = (names: readonly string[]) =>
  names.map((node): AgentAddress => ({ url: `https://${node}:9443`, node }));
const named = (count: number) => agentsOf(Array.from({ length: count }, (_, index) => `node-${index + 1}`));
const imagesOf = (count: number) =>
  Array.from({ length: count }, (_, index) => `registry.example/team-${index % 7}/app-${index}:1`);

t.test('the owner depends neither on the order of the agents nor on the tag', async (t) => {
  const agents = uniqueArray(stringMatching(/^[a-z0-9-]{1,20}$/), { minLength: 1, maxLength: 20 });
  const repositories = stringMatching(/^[a-z]{1,10}\/[a-z0-9]{1,30}$/);
  await assert(
    asyncProperty(agents.map(agentsOf), repositories, nat(), async (listed, repository, turn) => {
      const at = turn % listed.length;
      const shuffled = [...listed.slice(at).reverse(), ...listed.slice(0, at)];
      const [[one], [other]] = [
        await ownersOf([`r.example/${repository}:1`], listed),
        await ownersOf([`r.example/${repository}:2`], shuffled),
      ];
      return one !== undefined && one === other;
    }),
    { numRuns: 50 },
  );
  t.strictSame(await ownersOf(['r.example/app:1'], []), []);
});

t.test('only repositories of a removed agent get a new owner', async (t) => {
  const images = imagesOf(1000);
  const before = await ownersOf(images, named(20));
  const [gone, ...rest] = named(20);
  const after = await ownersOf(images, rest);
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
    const owners = Map.groupBy(await ownersOf(imagesOf(imageCount), named(agentCount)), (url) => url);
    const shares = [...owners.values()].map((own) => (own.length / imageCount) * agentCount);
    t.equal(shares.length, agentCount);
    t.ok(Math.max(...shares) < 1.25 && Math.min(...shares) > 0.75, shares.join(' '));
  }
});

t.test('an agent keeps its repositories when its address changes, if its node is known', async (t) => {
  const images = imagesOf(200);
  const agents = named(10);
  const moved = agents.map((agent, index) =>
    index === 3 ? { ...agent, url: 'https://10.9.9.9:9443' } : agent,
  );
  const [before, after] = [await ownersOf(images, agents), await ownersOf(images, moved)];
  t.strictSame(
    after.map((url) => (url === moved[3]?.url ? agents[3]?.url : url)),
    before,
  );
});
