/** Availability of the agents as a whole: none is known, none responds, one comes back. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { recordingLog } from '../support/captured.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { startFleet } from './fleet-setup.ts';
import { createAgentList, createPki, startScripted } from './support.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { like } from '../support/like.ts';

async function setup(t: Test) {
  const pki = await createPki(t);
  const clock = createFakeClock();
  const discovery = createAgentList();
  const { log, lines } = recordingLog();
  const { fleet, metric } = await startFleet(t, pki, discovery, { clock, log });
  return {
    pki,
    clock,
    discovery,
    fleet,
    logged: () =>
      lines
        .filter(({ agents }) => agents !== undefined)
        .map(({ level, msg, agents }) => `${String(level)} ${String(agents)} ${String(msg)}`),
    metric,
  };
}

const gone = /^warn \d no agent answers: images that are not in memory are unknown, and gate no pods/;
const back = /^info 1 agents answer again: unknown images gate pods$/;

t.test('without agents the fleet is unavailable after 30 s', async (t) => {
  const { pki, clock, discovery, fleet, logged, metric } = await setup(t);
  discovery.set([]);
  await fleet.grouped(neverAborted);
  await clock.advance(29_000);
  t.ok(fleet.isAvailable(), 'agents of a new cluster are still starting');
  t.equal(await metric('archwright_fleet_available'), 1);
  await clock.advance(1000);
  t.notOk(fleet.isAvailable());
  t.equal(await metric('archwright_fleet_available'), 0);
  const alerts = readFileSync('charts/archwright/files/alerts.json', 'utf8');
  t.ok(alerts.includes('"min(archwright_fleet_available) == 0"'), 'an alert follows the metric');
  await clock.advance(600_000);
  like(t, logged(), [gone]);
  t.equal(logged().length, 1, 'logged once');
  const agent = await startScripted(t, pki);
  discovery.set([agent]);
  await fleet.grouped(neverAborted);
  t.ok(fleet.isAvailable());
  like(t, logged(), [gone, back]);
  t.equal(await metric('archwright_fleet_available'), 1);
});

t.test('if no known agent responds, the fleet is unavailable after 30 s', async (t) => {
  const { pki, clock, discovery, fleet, logged, metric } = await setup(t);
  const agent = await startScripted(t, pki);
  discovery.set([agent]);
  await fleet.grouped(neverAborted);
  t.equal(await metric('archwright_fleet_agents{state="ready"}'), 1);
  await agent.stop();
  await clock.advance(60_000);
  await fleet.grouped(neverAborted);
  t.equal(await metric('archwright_fleet_agents{state="silent"}'), 1);
  t.ok(fleet.isAvailable(), 'a short outage');
  await clock.advance(30_000);
  t.notOk(fleet.isAvailable());
  like(t, logged(), [gone]);
});

t.test('an outage of less than 30 s is not reported', async (t) => {
  const { pki, clock, discovery, fleet, logged } = await setup(t);
  const agent = await startScripted(t, pki);
  discovery.set([agent]);
  await fleet.grouped(neverAborted);
  for (let round = 0; round < 3; round += 1) {
    discovery.set([]);
    await fleet.grouped(neverAborted);
    await clock.advance(29_000);
    discovery.set([agent]);
    await fleet.grouped(neverAborted);
    t.ok(fleet.isAvailable());
  }
  t.strictSame(logged(), []);
});
