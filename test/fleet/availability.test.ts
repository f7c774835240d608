/** Availability of the agents as a whole: none is known, none responds, one comes back. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { parseSamples, type Sample } from '../../cmd/installation/samples.ts';
import { createFleet } from '../../src/fleet/fleet.ts';
import { startHealth } from '../../src/serving/health.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { send } from '../serving/support.ts';
import { seriesOf, recordingLog } from '../support/captured.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { connect, createAgentList, createPki, startScripted } from './support.ts';
import { neverAborted } from '../support/never-aborted.ts';
import { like } from '../support/like.ts';

async function setup(t: Test) {
  const pki = await createPki(t);
  const clock = createFakeClock();
  const discovery = createAgentList();
  const metrics = createMetrics();
  const { log, lines } = recordingLog();
  const fleet = createFleet({ discovery, connection: await connect(t, pki), clock, log, metrics });
  t.teardown(() => fleet.close());
  return {
    pki,
    clock,
    discovery,
    fleet,
    log,
    metrics,
    logged: () =>
      lines
        .filter(({ agents }) => agents !== undefined)
        .map(({ level, msg, agents }) => `${String(level)} ${String(agents)} ${String(msg)}`),
    metric: (sample: string) => seriesOf(metrics, sample),
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

/**
 * Whether the expression of an alert has a result: `min(METRIC) == NUMBER` over the samples of all replicas.
 */
function fires(expr: string, samples: readonly Sample[]): boolean {
  const [, aggregation, name, wanted] = /^(min|max)\((\w+)\) == (\d+)$/.exec(expr) ?? [];
  const values = samples.filter((sample) => sample.name === name).map(({ value }) => value);
  const number = aggregation === 'min' ? Math.min(...values) : Math.max(...values);
  return aggregation !== undefined && number === Number(wanted);
}

t.test('the alert of the chart fires on what Prometheus reads while no agent is known', async (t) => {
  const alerts = JSON.parse(readFileSync('charts/archwright/files/alerts.json', 'utf8')) as {
    readonly name: string;
    readonly expr: string;
  }[];
  const { expr = '' } = alerts.find(({ name }) => name === 'ArchwrightNoAgents') ?? {};
  const start = async () => {
    const replica = await setup(t);
    const { metrics, log } = replica;
    const health = await startHealth({ listen: '127.0.0.1:0', ready: {}, metrics, log });
    t.teardown(() => health.drain(0));
    return { ...replica, page: `${health.url}/metrics` };
  };
  const [first, second] = await Promise.all([start(), start()]);
  const isFiring = async (): Promise<boolean> => {
    const pages = await Promise.all([first, second].map(({ page }) => send(page, { agent: false })));
    t.strictSame(
      pages.map(({ status }) => status),
      [200, 200],
    );
    return fires(
      expr,
      pages.flatMap(({ body }) => parseSamples(body)),
    );
  };
  const agent = await startScripted(t, first.pki);
  first.discovery.set([]);
  await first.fleet.grouped(neverAborted);
  second.discovery.set([]);
  await second.fleet.grouped(neverAborted);
  t.notOk(await isFiring(), 'agents of a new cluster are still starting');
  await first.clock.advance(30_000);
  t.ok(await isFiring(), 'one replica without agents is enough');
  first.discovery.set([agent]);
  await first.fleet.grouped(neverAborted);
  t.notOk(await isFiring(), 'an agent answers again');
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
