import { createFakeClock } from '../../support/fake-clock.ts';
import t from 'tap';
import { AgentHealth } from '../../../src/fleet/lookup/agent-health.ts';

const url = 'https://a:1';

t.test('failures back an agent off for 1 s, doubling up to 30 s', async (t) => {
  const clock = createFakeClock();
  const health = new AgentHealth(clock);
  t.equal(health.backedOffMs(url), 0);
  const pauses: number[] = [];
  for (let count = 0; count < 8; count += 1) {
    health.failed(url);
    pauses.push(health.backedOffMs(url));
    await clock.advance(health.backedOffMs(url));
    t.equal(health.backedOffMs(url), 0);
  }
  t.strictSame(pauses, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  t.equal(health.backedOffMs('https://b:1'), 0, 'others are healthy');
});

t.test('concurrent failures count once', async (t) => {
  const clock = createFakeClock();
  const health = new AgentHealth(clock);
  for (let count = 0; count < 50; count += 1) health.failed(url);
  t.equal(health.backedOffMs(url), 1000);
  await clock.advance(400);
  health.failed(url);
  t.equal(health.backedOffMs(url), 600);
});

t.test('an answer ends and resets the back-off', async (t) => {
  const clock = createFakeClock();
  const health = new AgentHealth(clock);
  health.failed(url);
  await clock.advance(1000);
  health.failed(url);
  health.answered(url);
  t.equal(health.backedOffMs(url), 0);
  health.failed(url);
  t.equal(health.backedOffMs(url), 1000);
});

t.test('three slow answers in a row count as a failure', async (t) => {
  const clock = createFakeClock();
  const health = new AgentHealth(clock);
  health.slow(url);
  health.slow(url);
  t.equal(health.backedOffMs(url), 0);
  health.answered(url);
  health.slow(url);
  health.slow(url);
  t.equal(health.backedOffMs(url), 0);
  health.slow(url);
  t.equal(health.backedOffMs(url), 1000);
  await clock.advance(1000);
  health.slow(url);
  t.equal(health.backedOffMs(url), 0, 'the count restarts after the back-off');
});

t.test('agents that left are forgotten', async (t) => {
  const health = new AgentHealth(createFakeClock());
  health.failed(url);
  health.failed('https://b:1');
  health.retain(new Set(['https://b:1']));
  t.equal(health.backedOffMs(url), 0);
  t.equal(health.backedOffMs('https://b:1'), 1000);
});
