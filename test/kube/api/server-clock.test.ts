import t from 'tap';
import { ServerClock } from '../../../src/kube/api/server-clock.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const http = (ms: number): string => new Date(ms).toUTCString();
const start = Date.parse('2030-01-01T00:00:00Z');

void t.test('before the first answer the local clock counts', async (t) => {
  const clock = createFakeClock();
  const server = new ServerClock(clock);
  t.equal(server.now(), clock.now());
  for (const date of [undefined, '', 'yesterday', '🕛']) server.answered(date, clock.monotonic());
  t.equal(server.now(), clock.now());
});

void t.test('the header and the time that has passed since; the local clock does not matter', async (t) => {
  const time = createFakeClock();
  const server = new ServerClock(time);
  server.answered(http(start), time.monotonic());
  t.equal(server.now(), start);
  await time.advance(1500);
  time.setWall(0);
  t.equal(server.now(), start + 1500);
});

void t.test('each answer narrows the bounds, and none makes the clock run ahead of the server', async (t) => {
  const time = createFakeClock();
  const server = new ServerClock(time);
  // The server is 730 ms into its second, which the header does not say.
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
  t.ok(worst < 150, 'from a second to a fraction of it');
});

void t.test('a server whose clock was set, or another replica, is believed at once', async (t) => {
  const time = createFakeClock();
  const server = new ServerClock(time);
  for (const at of [start, start + 3_600_000, start - 3_600_000]) {
    server.answered(http(at), time.monotonic());
    t.equal(server.now(), at);
  }
});
