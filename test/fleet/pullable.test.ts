import { createFakeClock } from '../support/fake-clock.ts';
import t from 'tap';
import type { PullableGroups } from '../../src/fleet/fleet.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { failureOf, factsOf, questionOf } from './support.ts';
import { until } from '../support/until.ts';
import { cut, denied, image, setup, silent, type Answer } from './fleet-setup.ts';

const question = questionOf(image);
const minute = 60_000;

const short = ({ able, unable }: PullableGroups): unknown => ({
  able: able.map(({ name }) => name),
  unable: unable.map(({ name }) => name),
});

t.test('a refusal that was passed on is known at once, and nobody else is asked', async (t) => {
  const { fleet, lines, lookup, asked } = await setup(t, [
    { facts: denied('unauthorized'), fingerprint: 'fingerprint-of-one', node: 'n1', architecture: 'amd64' },
    { fingerprint: 'fingerprint-of-one', node: 'n2', architecture: 'arm64' },
    { fingerprint: 'fingerprint-of-two', node: 'n3', architecture: 'arm64' },
  ]);
  t.strictSame(await lookup(), factsOf(image));
  t.strictSame(fleet.pullable(question), {
    able: [{ name: 'fingerprint-', nodes: ['n3'], architectures: ['arm64'] }],
    unable: [{ name: 'fingerprint-', nodes: ['n1', 'n2'], architectures: ['amd64', 'arm64'] }],
  });
  t.strictSame(asked(), [1, 0, 1]);
  t.match(
    lines(),
    /"level":"debug".*"group":"fingerprint-","refusal":"unauthorized".*another credential group/,
  );
});

t.test('groups that were not asked are asked behind the answer, one agent of each', async (t) => {
  const { fleet, agents, lookup, asked, metric } = await setup(t, [
    { fingerprint: 'one', node: 'n1' },
    { fingerprint: 'two', node: 'n2', facts: denied('forbidden') },
    { fingerprint: 'two', node: 'n3', facts: denied('forbidden') },
    { fingerprint: 'three', node: 'n4', facts: denied('unavailable') },
    { fingerprint: 'four', node: 'n5', facts: denied('not-found') },
  ]);
  await lookup();
  t.strictSame(asked(), [1, 0, 0, 0, 0]);
  const first = fleet.pullable({ ...question, pullPolicy: 'Always' });
  t.strictSame(short(first), { able: ['one'], unable: [] });
  await Promise.all([first.pending, fleet.pullable(question).pending]);
  t.strictSame(asked(), [1, 1, 0, 1, 1]);
  t.equal(agents[1]?.asked[0]?.images[0]?.pullPolicy, 'IfNotPresent', 'its memory may answer');
  const then = fleet.pullable(question);
  t.strictSame(short(then), { able: ['one'], unable: ['two', 'three'] });
  t.equal(then.pending, undefined);
  t.strictSame(
    then.unable.flatMap(({ nodes }) => nodes),
    ['n2', 'n3', 'n4'],
  );
  for (const [outcome, count] of [
    ['refused', 1],
    ['unreachable', 1],
    ['unknown', 1],
    ['able', 0],
  ] as const)
    t.equal(await metric(`archwright_fleet_surveyed_groups_total{outcome="${outcome}"}`), count, outcome);
  t.equal(await metric('archwright_fleet_pullability_repositories'), 1);
});

t.test('knowledge grows old: asked again behind the answer, then gone', async (t) => {
  const clock = createFakeClock();
  const { fleet, agents, asked } = await setup(
    t,
    [{ fingerprint: 'one' }, { fingerprint: 'two', facts: denied('forbidden') }],
    { clock },
  );
  await fleet.pullable(question).pending;
  t.strictSame(short(fleet.pullable(question)), { able: ['one'], unable: ['two'] });
  await clock.advance(2 * minute);
  const [, second] = agents;
  if (!second) throw new Error('no agent');
  second.script.facts = (asked) => ({ results: asked.images.map((each) => factsOf(each.image)) });
  const old = fleet.pullable(question);
  t.strictSame(short(old), { able: ['one'], unable: ['two'] });
  t.equal(old.pending, undefined, 'nobody waits for what is known');
  await until(() => fleet.pullable(question).able.length === 2);
  t.strictSame(asked(), [1, 2], 'the grant is not due');
  second.script.facts = silent;
  await clock.advance(60 * minute);
  t.strictSame(short(fleet.pullable(question)), { able: [], unable: [] });
});

t.test('with one group, or none that is known, nobody is asked', async (t) => {
  for (const scripts of [
    [],
    [{ fingerprint: 'one' }, { fingerprint: 'one' }],
    [{ fingerprint: 'one' }, { info: () => ({}) }],
    [{ info: () => ({}) }, { info: () => ({}) }],
  ]) {
    const { fleet, asked } = await setup(t, scripts);
    t.strictSame(fleet.pullable(question), { able: [], unable: [] });
    t.strictSame(
      asked(),
      scripts.map(() => 0),
    );
  }
});

t.test('agents that say no node name leave nobody out', async (t) => {
  const { fleet } = await setup(t, [
    { fingerprint: 'one', node: 'n1' },
    { fingerprint: 'two', facts: denied('forbidden') },
  ]);
  await fleet.pullable(question).pending;
  t.strictSame(fleet.pullable(question).unable, [{ name: 'two', nodes: [], architectures: [] }]);
});

t.test('a group whose agents are away tells nothing, and is left alone for a while', async (t) => {
  const clock = createFakeClock();
  const { fleet, asked, metric } = await setup(
    t,
    [{ fingerprint: 'one' }, { fingerprint: 'two', facts: cut }, { fingerprint: 'two', facts: cut }],
    { clock },
  );
  await fleet.pullable(question).pending;
  t.strictSame(asked(), [1, 1, 1], 'the next of the group stands in');
  t.strictSame(fleet.pullable(question), {
    able: [{ name: 'one', nodes: [], architectures: [] }],
    unable: [],
  });
  t.equal(await metric('archwright_fleet_surveyed_groups_total{outcome="unknown"}'), 1);
  await clock.advance(minute);
  await fleet.pullable(question).pending;
  t.strictSame(asked(), [1, 2, 2]);
});

t.test('of very many groups the rest is asked the next time', async (t) => {
  const { fleet, agents } = await setup(
    t,
    Array.from({ length: 34 }, (_, index) => ({ fingerprint: `group ${index}` })),
  );
  const asked = (): number => agents.filter((agent) => agent.asked.length > 0).length;
  await fleet.pullable(question).pending;
  t.equal(asked(), 32);
  await fleet.pullable(question).pending;
  t.equal(asked(), 34);
  t.equal(fleet.pullable(question).able.length, 34);
});

t.test('surveys are bounded, and end with the fleet', async (t) => {
  const { fleet, agents } = await setup(t, [
    { fingerprint: 'one', facts: silent },
    { fingerprint: 'two', facts: silent },
  ]);
  const questions = Array.from({ length: 70 }, (_, index) => questionOf(`registry.example/app-${index}:1`));
  const asking = questions.map((each) => fleet.pullable(each).pending ?? Promise.resolve());
  // A third of 128 for one namespace.
  await Promise.all(asking.slice(43));
  await until(() => agents.every((agent) => agent.asked.length > 0));
  fleet.close();
  await Promise.all(asking);
  const asked = (): readonly (string | undefined)[] =>
    agents.flatMap((agent) => agent.asked.map(({ images: [first] }) => first?.image));
  const before = asked().length;
  await fleet.pullable(questionOf('registry.example/late:1')).pending;
  t.equal(asked().length, before, 'nobody is asked after the end');
  t.notOk(asked().some((each) => Number(each?.match(/app-([0-9]+)/)?.[1]) >= 43));
});

t.test('pull credentials go with the question, and what they open is told apart', async (t) => {
  const withAuths: Answer = (asked) => ({
    results: asked.images.map((each) =>
      asked.auths
        ? factsOf(each.image, { credentialSource: 'pull-secret' })
        : failureOf(each.image, 'unauthorized'),
    ),
  });
  const { fleet } = await setup(t, [{ fingerprint: 'one' }, { fingerprint: 'two', facts: withAuths }]);

  const own = questionOf(image, [
    {
      credential: { username: 'ann', password: secret('correct horse') },
      source: 'pull-secret',
      key: 'registry.example/team',
      origin: 'shop/regcred',
      id: 'id-1',
    },
  ]);
  await fleet.pullable(question).pending;
  await fleet.pullable(own).pending;
  t.strictSame(short(fleet.pullable(question)), { able: ['one'], unable: ['two'] });
  t.strictSame(short(fleet.pullable(own)), { able: ['one', 'two'], unable: [] });
});
