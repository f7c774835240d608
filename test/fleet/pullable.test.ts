import { createFakeClock } from '../support/fake-clock.ts';
import t from 'tap';
import type { PullableGroups } from '../../src/fleet/fleet.ts';
import { secret } from '../../src/telemetry/secret.ts';
import { failureOf, factsOf, requestFor } from './support.ts';
import { until } from '../support/until.ts';
import { cut, denied, image, setup, silent, type Answer } from './fleet-setup.ts';

const request = requestFor(image);
const minute = 60_000;

const short = ({ able, unable }: PullableGroups): unknown => ({
  able: able.map(({ name }) => name),
  unable: unable.map(({ name }) => name),
});

t.test('a refusal during fail-over is recorded without further requests', async (t) => {
  const { fleet, lines, lookup, requestCounts } = await setup(t, [
    { facts: denied('unauthorized'), fingerprint: 'fingerprint-of-one', node: 'n1', architecture: 'amd64' },
    { fingerprint: 'fingerprint-of-one', node: 'n2', architecture: 'arm64' },
    { fingerprint: 'fingerprint-of-two', node: 'n3', architecture: 'arm64' },
  ]);
  t.strictSame(await lookup(), factsOf(image));
  t.strictSame(fleet.pullable(request), {
    able: [{ name: 'fingerprint-', nodes: ['n3'], architectures: ['arm64'] }],
    unable: [{ name: 'fingerprint-', nodes: ['n1', 'n2'], architectures: ['amd64', 'arm64'] }],
  });
  t.strictSame(requestCounts(), [1, 0, 1]);
  t.match(
    lines(),
    /"level":"debug".*"group":"fingerprint-","refusal":"unauthorized".*another credential group/,
  );
});

t.test('groups without a result are surveyed in the background, one agent of each', async (t) => {
  const { fleet, agents, lookup, requestCounts, metric } = await setup(t, [
    { fingerprint: 'one', node: 'n1' },
    { fingerprint: 'two', node: 'n2', facts: denied('forbidden') },
    { fingerprint: 'two', node: 'n3', facts: denied('forbidden') },
    { fingerprint: 'three', node: 'n4', facts: denied('unavailable') },
    { fingerprint: 'four', node: 'n5', facts: denied('not-found') },
  ]);
  await lookup();
  t.strictSame(requestCounts(), [1, 0, 0, 0, 0]);
  const first = fleet.pullable({ ...request, pullPolicy: 'Always' });
  t.strictSame(short(first), { able: ['one'], unable: [] });
  await Promise.all([first.pending, fleet.pullable(request).pending]);
  t.strictSame(requestCounts(), [1, 1, 0, 1, 1]);
  t.equal(agents[1]?.requests[0]?.images[0]?.pullPolicy, 'IfNotPresent', 'the agent may answer from memory');
  const then = fleet.pullable(request);
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

t.test('old results are refreshed in the background, then expire', async (t) => {
  const clock = createFakeClock();
  const { fleet, agents, requestCounts } = await setup(
    t,
    [{ fingerprint: 'one' }, { fingerprint: 'two', facts: denied('forbidden') }],
    { clock },
  );
  await fleet.pullable(request).pending;
  t.strictSame(short(fleet.pullable(request)), { able: ['one'], unable: ['two'] });
  await clock.advance(2 * minute);
  const [, second] = agents;
  if (!second) throw new Error('no agent');
  second.script.facts = (body) => ({ results: body.images.map((each) => factsOf(each.image)) });
  const old = fleet.pullable(request);
  t.strictSame(short(old), { able: ['one'], unable: ['two'] });
  t.equal(old.pending, undefined, 'a known result is not waited for');
  await until(() => fleet.pullable(request).able.length === 2);
  t.strictSame(requestCounts(), [1, 2], 'the result able is not due');
  second.script.facts = silent;
  await clock.advance(60 * minute);
  t.strictSame(short(fleet.pullable(request)), { able: [], unable: [] });
});

t.test('fewer than two known groups are not surveyed', async (t) => {
  for (const scripts of [
    [],
    [{ fingerprint: 'one' }, { fingerprint: 'one' }],
    [{ fingerprint: 'one' }, { info: () => ({}) }],
    [{ info: () => ({}) }, { info: () => ({}) }],
  ]) {
    const { fleet, requestCounts } = await setup(t, scripts);
    t.strictSame(fleet.pullable(request), { able: [], unable: [] });
    t.strictSame(
      requestCounts(),
      scripts.map(() => 0),
    );
  }
});

t.test('a group without node names excludes no node', async (t) => {
  const { fleet } = await setup(t, [
    { fingerprint: 'one', node: 'n1' },
    { fingerprint: 'two', facts: denied('forbidden') },
  ]);
  await fleet.pullable(request).pending;
  t.strictSame(fleet.pullable(request).unable, [{ name: 'two', nodes: [], architectures: [] }]);
});

t.test('an unreachable group is unknown, and surveyed again after a minute', async (t) => {
  const clock = createFakeClock();
  const { fleet, requestCounts, metric } = await setup(
    t,
    [{ fingerprint: 'one' }, { fingerprint: 'two', facts: cut }, { fingerprint: 'two', facts: cut }],
    { clock },
  );
  await fleet.pullable(request).pending;
  t.strictSame(requestCounts(), [1, 1, 1], 'the next agent of the group gets the request');
  t.strictSame(fleet.pullable(request), {
    able: [{ name: 'one', nodes: [], architectures: [] }],
    unable: [],
  });
  t.equal(await metric('archwright_fleet_surveyed_groups_total{outcome="unknown"}'), 1);
  await clock.advance(minute);
  await fleet.pullable(request).pending;
  t.strictSame(requestCounts(), [1, 2, 2]);
});

t.test('a survey covers 32 groups; the next one covers the rest', async (t) => {
  const { fleet, agents } = await setup(
    t,
    Array.from({ length: 34 }, (_, index) => ({ fingerprint: `group ${index}` })),
  );
  const queried = (): number => agents.filter((agent) => agent.requests.length > 0).length;
  await fleet.pullable(request).pending;
  t.equal(queried(), 32);
  await fleet.pullable(request).pending;
  t.equal(queried(), 34);
  t.equal(fleet.pullable(request).able.length, 34);
});

t.test('surveys per namespace are limited, and closing the fleet ends them', async (t) => {
  const { fleet, agents } = await setup(t, [
    { fingerprint: 'one', facts: silent },
    { fingerprint: 'two', facts: silent },
  ]);
  const requests = Array.from({ length: 70 }, (_, index) => requestFor(`registry.example/app-${index}:1`));
  const asking = requests.map((each) => fleet.pullable(each).pending ?? Promise.resolve());
  // One namespace has a third of 128.
  await Promise.all(asking.slice(43));
  await until(() => agents.every((agent) => agent.requests.length > 0));
  fleet.close();
  await Promise.all(asking);
  const images = (): readonly (string | undefined)[] =>
    agents.flatMap((agent) => agent.requests.map(({ images: [first] }) => first?.image));
  const before = images().length;
  await fleet.pullable(requestFor('registry.example/late:1')).pending;
  t.equal(images().length, before, 'no request after close');
  t.notOk(images().some((each) => Number(each?.match(/app-([0-9]+)/)?.[1]) >= 43));
});

t.test('a survey sends the pull credentials, and its results serve only them', async (t) => {
  const withAuths: Answer = (body) => ({
    results: body.images.map((each) =>
      body.auths
        ? factsOf(each.image, { credentialSource: 'pull-secret' })
        : failureOf(each.image, 'unauthorized'),
    ),
  });
  const { fleet } = await setup(t, [{ fingerprint: 'one' }, { fingerprint: 'two', facts: withAuths }]);

  const own = requestFor(image, [
    {
      credential: { username: 'ann', password: secret('correct horse') },
      source: 'pull-secret',
      key: 'registry.example/team',
      origin: 'shop/regcred',
      id: 'id-1',
    },
  ]);
  await fleet.pullable(request).pending;
  await fleet.pullable(own).pending;
  t.strictSame(short(fleet.pullable(request)), { able: ['one'], unable: ['two'] });
  t.strictSame(short(fleet.pullable(own)), { able: ['one', 'two'], unable: [] });
});
