import t from 'tap';
import { createAgentHealth } from '../../../src/fleet/lookup/agent-health.ts';
import { manualClock } from '../support.ts';

const url = 'https://a:1';

t.test('an agent that fails rests one second, then twice as long each time, thirty at most', (t) => {
  const clock = manualClock();
  const rest = createAgentHealth(clock);
  t.equal(rest.remainingMs(url), 0);
  const rests: number[] = [];
  for (let count = 0; count < 8; count += 1) {
    rest.failed(url);
    rests.push(rest.remainingMs(url));
    clock.advance(rest.remainingMs(url));
    t.equal(rest.remainingMs(url), 0);
  }
  t.strictSame(rests, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  t.equal(rest.remainingMs('https://b:1'), 0, 'others do not rest');
  t.end();
});

t.test('questions that fail together count once', (t) => {
  const clock = manualClock();
  const rest = createAgentHealth(clock);
  for (let count = 0; count < 50; count += 1) rest.failed(url);
  t.equal(rest.remainingMs(url), 1000);
  clock.advance(400);
  rest.failed(url);
  t.equal(rest.remainingMs(url), 600);
  t.end();
});

t.test('an answer ends it all', (t) => {
  const clock = manualClock();
  const rest = createAgentHealth(clock);
  rest.failed(url);
  clock.advance(1000);
  rest.failed(url);
  rest.answered(url);
  t.equal(rest.remainingMs(url), 0);
  rest.failed(url);
  t.equal(rest.remainingMs(url), 1000);
  t.end();
});

t.test('slow three times in a row is a failure', (t) => {
  const clock = manualClock();
  const rest = createAgentHealth(clock);
  rest.slow(url);
  rest.slow(url);
  t.equal(rest.remainingMs(url), 0);
  rest.answered(url);
  rest.slow(url);
  rest.slow(url);
  t.equal(rest.remainingMs(url), 0);
  rest.slow(url);
  t.equal(rest.remainingMs(url), 1000);
  clock.advance(1000);
  rest.slow(url);
  t.equal(rest.remainingMs(url), 0, 'after its rest it starts anew');
  t.end();
});

t.test('agents that are gone are forgotten', (t) => {
  const rest = createAgentHealth(manualClock());
  rest.failed(url);
  rest.failed('https://b:1');
  rest.keep(new Set(['https://b:1']));
  t.equal(rest.remainingMs(url), 0);
  t.equal(rest.remainingMs('https://b:1'), 1000);
  t.end();
});
