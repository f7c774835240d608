import t from 'tap';
import { ServerClock } from '../../../src/kube/api/server-clock.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const http = (ms: number): string => new Date(ms).toUTCString();
const start = Date.parse('2030-01-01T00:00:00Z');

void t.test('before the first Date header the local clock is used', async (t) => {
  const clock = createFakeClock();
  const server = new ServerClock(clock);
  t.equal(server.now(), clock.now());
  for (const date of [undefined, '', 'yesterday', '🕛']) server.answered(date, clock.monotonic());
  t.equal(server.now(), clock.now());
});

void t.test(
  'the server time is the Date header plus the time since; the wall clock is not used',
  async (t) => {
    const time = createFakeClock();
    const server = new ServerClock(time);
    server.answered(http(start), time.monotonic());
    t.equal(server.now(), start);
    await time.advance(1500);
    time.setWall(0);
    t.equal(server.now(), start + 1500);
  },
);

void t.test('each answer reduces the error, and the clock is never ahead of the server', async (t) => {
  const time = createFakeClock();
  const server = new ServerClock(time);
  // The server is 730 ms into its second; the header has whole seconds.
  const ahead = start + 730 - time.monotonic();
  let worst = 1000;
  for (let i = 0; i < 40; i++) {
    const sentAt = time.monotonic();
    const header = http(sentAt + ahead);
    await time.advance(3);
    server.answered(header, sentAt);
    const error = ahead + time.monotonic() - server.now();
    t.ok(error >= 0 && error <= worst, `behind by ${error} ms`);
    worst = error;
    await time.advance(137);
  }
  t.ok(worst < 150, 'less than 150 ms in the end');
});

void t.test('after a jump of the server clock, the new time is used at once', async (t) => {
  const time = createFakeClock();
  const server = new ServerClock(time);
  for (const at of [start, start + 3_600_000, start - 3_600_000]) {
    server.answered(http(at), time.monotonic());
    t.equal(server.now(), at);
  }
});
