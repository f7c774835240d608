import t from 'tap';
import { leavesNothing, pidsIn, start } from './run.ts';

/** The table of what runs is written, and the line after it. */
const everythingStarted = /process \d+[^]*\n\n/;

t.test('a child that dies ends it with an error', async (t) => {
  const demo = start(t);
  await demo.until(everythingStarted);
  const [agent = 0] = pidsIn(demo.text());
  process.kill(agent, 'SIGKILL');
  t.match(await demo.ended, { code: 1, err: /demo: agent-node-a ended too early \(SIGKILL\)/ });
  leavesNothing(t, demo);
});

t.test('interrupted', async (t) => {
  const demo = start(t);
  await demo.until(everythingStarted);
  demo.child.kill('SIGINT');
  t.match(await demo.ended, { code: 130, err: '' });
  leavesNothing(t, demo);
});
