import { createFakeClock } from '../support/fake-clock.ts';
import t from 'tap';
import type { Fleet } from '../../src/fleet/fleet.ts';
import type { PullableGroups } from '../../src/fleet/pullable.ts';
import { factsOf, failureOf, requestFor } from '../support/facts.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { type Answer, cut, denied, image, setup } from './support.ts';

const request = requestFor(image);
const minute = 60_000;

/** All that is known once the groups have answered. */
const pullable = (fleet: Fleet, of = request) => fleet.pullable(of, neverAborted);

const short = ({ able, unable }: PullableGroups): unknown => ({
  able: able.map(({ fingerprint }) => fingerprint),
  unable: unable.map(({ fingerprint }) => fingerprint),
});

const withNames = ({ able, unable }: PullableGroups) => ({
  able: able.map(({ fingerprint, nodes, architectures }) => ({ fingerprint, nodes, architectures })),
  unable: unable.map(({ fingerprint, nodes, architectures }) => ({ fingerprint, nodes, architectures })),
});

t.test('one agent of each group is asked', async (t) => {
  const { fleet, agents, requestCounts } = await setup(t, [
    { fingerprint: 'fingerprint-of-one', node: 'n1', architecture: 'amd64' },
    { fingerprint: 'two', node: 'n2', architecture: 'amd64', facts: denied('forbidden') },
    { fingerprint: 'two', node: 'n3', architecture: 'arm64' },
    { fingerprint: 'three', facts: denied('unavailable') },
    { fingerprint: 'four', node: 'n5', facts: denied('not-found') },
    { fingerprint: 'five', facts: () => factsOf(image, { source: 'override' }) },
  ]);
  const impatient = fleet.pullable(request, AbortSignal.abort());
  t.strictSame(await impatient, { able: [], unable: [] });
  const known = {
    able: [{ fingerprint: 'fingerprint-of-one', nodes: ['n1'], architectures: ['amd64'] }],
    unable: [
      { fingerprint: 'two', nodes: ['n2', 'n3'], architectures: ['amd64', 'arm64'] },
      { fingerprint: 'three', nodes: [], architectures: [] },
    ],
  };
  t.strictSame(withNames(await pullable(fleet)), known);
  t.strictSame(withNames(await pullable(fleet)), known, 'remembered');
  t.strictSame(requestCounts(), [1, 1, 0, 1, 1, 1]);
  t.equal(agents[1]?.requests[0]?.images[0]?.maxAgeMs, undefined, 'the agent may answer from memory');
});

t.test('results expire', async (t) => {
  const clock = createFakeClock();
  const scripts = [{ fingerprint: 'one' }, { fingerprint: 'two', facts: denied('forbidden') }];
  const { fleet, agents, requestCounts } = await setup(t, scripts, clock);
  t.strictSame(short(await pullable(fleet)), { able: ['one'], unable: ['two'] });
  if (agents[1]) delete agents[1].script.facts;
  await clock.advance(10 * minute - 1);
  t.strictSame(short(await pullable(fleet)), { able: ['one'], unable: ['two'] });
  await clock.advance(1);
  t.strictSame(short(await pullable(fleet)), { able: ['one', 'two'], unable: [] });
  t.strictSame(requestCounts(), [1, 2]);
  await clock.advance(50 * minute);
  await pullable(fleet);
  t.strictSame(requestCounts(), [2, 2]);
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

t.test('an unreachable group is unknown, and surveyed again after a minute', async (t) => {
  const clock = createFakeClock();
  const failing = { fingerprint: 'two', facts: cut };
  const { fleet, requestCounts } = await setup(t, [{ fingerprint: 'one' }, failing, failing], clock);
  await pullable(fleet);
  t.strictSame(requestCounts(), [1, 1, 1], 'the next agent of the group gets the request');
  t.strictSame(withNames(await pullable(fleet)), {
    able: [{ fingerprint: 'one', nodes: [], architectures: [] }],
    unable: [],
  });
  await clock.advance(minute);
  await pullable(fleet);
  t.strictSame(requestCounts(), [1, 2, 2]);
});

t.test('a survey sends the pull credentials, and its results serve only them', async (t) => {
  const withAuths: Answer = ({ auths }) =>
    auths ? factsOf(image, { credentialSource: 'pull-secret' }) : failureOf(image, 'unauthorized');
  const { fleet } = await setup(t, [{ fingerprint: 'one' }, { fingerprint: 'two', facts: withAuths }]);
  const own = requestFor(image, { credentials: ['id-1'] });
  await pullable(fleet);
  await pullable(fleet, own);
  t.strictSame(short(await pullable(fleet)), { able: ['one'], unable: ['two'] });
  t.strictSame(short(await pullable(fleet, own)), { able: ['one', 'two'], unable: [] });
});
