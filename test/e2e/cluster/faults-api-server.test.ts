/** An API server that stops, loses its connections, or answers with errors, while pods are gated. */
import t from 'tap';
import { createRandom, seedOfRun } from '../random.ts';
import { startCut, startStorm, type StormAnswer } from './faults/proxies.ts';
import { startScene } from './faults/scene.ts';

const seed = seedOfRun();

const answers: readonly [StormAnswer, ...StormAnswer[]] = [
  { status: 409, reason: 'Conflict' },
  { status: 429, reason: 'TooManyRequests', headers: { 'retry-after': '1' } },
  { status: 429, reason: 'TooManyRequests' },
  { status: 500, reason: 'InternalError' },
  { status: 503, reason: 'ServiceUnavailable' },
  { status: 504, reason: 'Timeout', doneAnyway: true },
  { status: 500, reason: 'InternalError', doneAnyway: true },
];

void t.test('the API server stops, is cut off, or answers with errors', async (t) => {
  t.comment(`E2E_SEED=${seed}`);
  const random = createRandom(seed);
  const scene = await startScene(t);
  const { cluster } = scene;

  const alone = await scene.controller();
  await scene.leader();
  const restarted = await scene.crowd({ name: 'restarted', count: 60, withUnknown: true });
  await restarted.gated();
  await cluster.stopApiServer();
  restarted.release();
  await cluster.startApiServer();
  await restarted.end();
  await alone.process.stop();

  const cut = await startCut(cluster.server);
  cluster.onStop(() => cut.close());
  const behind = await scene.controller({ name: 'behind', apiServer: cut.url });
  await scene.leader((name) => name === 'behind');
  const interrupted = await scene.crowd({ name: 'interrupted', count: 60, withUnknown: true });
  await interrupted.gated();
  for (let time = 0; time < 8; time += 1) {
    cut.cut();
    if (time === 2) interrupted.release();
    await scene.changes(10, 200);
  }
  await interrupted.end();

  const standby = await scene.controller({ name: 'standby' });
  const deaf = await scene.crowd({ name: 'deaf', count: 60, withUnknown: true });
  await deaf.gated();
  cut.hold(true);
  deaf.release();
  await scene.leader((name) => name === 'standby');
  cut.hold(false);
  await deaf.end();
  await Promise.all([behind.process.stop(), standby.process.stop()]);

  const storm = await startStorm(cluster, 'archwright-stormed');
  const stormed = await scene.controller({ name: 'stormed', apiServer: storm.url });
  await scene.leader((name) => name === 'stormed');
  const crowd = await scene.crowd({ name: 'crowd', count: 120, withUnknown: true });
  await crowd.gated();
  storm.rule = (method, path) => {
    // Without its Lease the controller would stop, which other tests cover.
    if (path.includes('/leases/')) return undefined;
    return random.chance(method === 'GET' ? 0.2 : 0.5) ? random.pick(answers) : undefined;
  };
  crowd.release();
  await crowd.end();
  t.comment(`answers of the storm: ${JSON.stringify([...storm.struck])}`);
  t.ok(
    [409, 429, 500, 503].every((status) => storm.struck.has(status)),
    'each kind of bad answer was given',
  );
  await stormed.process.stop();
  await scene.clean();
});
