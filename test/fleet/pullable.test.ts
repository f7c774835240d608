import { createFakeClock } from '../support/fake-clock.ts';
import t from 'tap';
import type { Fleet, PullableGroups } from '../../src/fleet/fleet.ts';
import { failureOf, factsOf, requestFor } from '../support/facts.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { until } from '../support/until.ts';
import { cut, denied, image, setup, silent, type Answer } from './fleet-setup.ts';

const request = requestFor(image);
const minute = 60_000;

/** All that is known once the groups have answered. */
const pullable = (fleet: Fleet, of = request) => fleet.pullable(of, neverAborted);

const short = ({ able, unable }: PullableGroups): unknown => ({
  able: able.map(({ name }) => name),
  unable: unable.map(({ name }) => name),
});

const withNames = ({ able, unable }: PullableGroups) => ({
  able: able.map(({ name, nodes, architectures }) => ({ name, nodes, architectures })),
  unable: unable.map(({ name, nodes, architectures }) => ({ name, nodes, architectures })),
});

t.test('a refusal during fail-over is recorded without further requests', async (t) => {
  const { fleet, lookup, requestCounts } = await setup(t, [
    { facts: denied('unauthorized'), fingerprint: 'fingerprint-of-one', node: 'n1', architecture: 'amd64' },
    { fingerprint: 'fingerprint-of-one', node: 'n2', architecture: 'arm64' },
    { fingerprint: 'fingerprint-of-two', node: 'n3', architecture: 'arm64' },
  ]);
  t.strictSame(await lookup(), factsOf(image));
  t.strictSame(withNames(await pullable(fleet)), {
    able: [{ name: 'fingerprint-', nodes: ['n3'], architectures: ['arm64'] }],
    unable: [{ name: 'fingerprint-', nodes: ['n1', 'n2'], architectures: ['amd64', 'arm64'] }],
  });
  t.strictSame(requestCounts(), [1, 0, 1]);
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
  const impatient = fleet.pullable({ ...request, maxAgeMs: 0 }, AbortSignal.abort());
  t.strictSame(short(await impatient), { able: ['one'], unable: [] });
  const then = await pullable(fleet);
  t.strictSame(requestCounts(), [1, 1, 0, 1, 1]);
  t.equal(agents[1]?.requests[0]?.images[0]?.maxAgeMs, undefined, 'the agent may answer from memory');
  t.strictSame(short(then), { able: ['one'], unable: ['two', 'three'] });
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
  await pullable(fleet);
  t.strictSame(short(await pullable(fleet)), { able: ['one'], unable: ['two'] });
  await clock.advance(2 * minute);
  const [, second] = agents;
  if (!second) throw new Error('no agent');
  second.script.facts = (body) => ({ results: body.images.map((each) => factsOf(each.image)) });
  t.strictSame(short(await pullable(fleet)), { able: ['one'], unable: ['two'] }, 'not waited for');
  await until(async () => (await pullable(fleet)).able.length === 2);
  t.strictSame(requestCounts(), [1, 2], 'the result able is not due');
  second.script.facts = silent;
  await clock.advance(60 * minute);
  t.strictSame(short(await fleet.pullable(request, AbortSignal.abort())), { able: [], unable: [] });
});

t.test('fewer than two known groups are not surveyed', async (t) => {
  for (const scripts of [
    [],
    [{ fingerprint: 'one' }, { fingerprint: 'one' }],
    [{ fingerprint: 'one' }, { info: () => ({}) }],
    [{ info: () => ({}) }, { info: () => ({}) }],
  ]) {
    const { fleet, requestCounts } = await setup(t, scripts);
    t.strictSame(await pullable(fleet), { able: [], unable: [] });
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
  await pullable(fleet);
  t.strictSame(withNames(await pullable(fleet)).unable, [{ name: 'two', nodes: [], architectures: [] }]);
});

t.test('an unreachable group is unknown, and surveyed again after a minute', async (t) => {
  const clock = createFakeClock();
  const { fleet, requestCounts, metric } = await setup(
    t,
    [{ fingerprint: 'one' }, { fingerprint: 'two', facts: cut }, { fingerprint: 'two', facts: cut }],
    { clock },
  );
  await pullable(fleet);
  t.strictSame(requestCounts(), [1, 1, 1], 'the next agent of the group gets the request');
  t.strictSame(withNames(await pullable(fleet)), {
    able: [{ name: 'one', nodes: [], architectures: [] }],
    unable: [],
  });
  t.equal(await metric('archwright_fleet_surveyed_groups_total{outcome="unknown"}'), 1);
  await clock.advance(minute);
  await pullable(fleet);
  t.strictSame(requestCounts(), [1, 2, 2]);
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
  const own = requestFor(image, { credentials: ['id-1'] });
  await pullable(fleet);
  await pullable(fleet, own);
  t.strictSame(short(await pullable(fleet)), { able: ['one'], unable: ['two'] });
  t.strictSame(short(await pullable(fleet, own)), { able: ['one', 'two'], unable: [] });
});
