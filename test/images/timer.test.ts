import t from 'tap';
import { systemTimer } from '../../src/images/timer.ts';

t.test('runs once, unless it is ended before', async (t) => {
  t.clock.enter();
  t.teardown(() => t.clock.exit());
  const ran: string[] = [];
  systemTimer(1000, () => ran.push('first'));
  const stop = systemTimer(1000, () => ran.push('second'));
  t.clock.advance(999);
  t.same(ran, []);
  stop();
  t.clock.advance(5000);
  t.same(ran, ['first']);
});
