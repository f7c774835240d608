/** An API server that stops, loses its connections, or returns errors, while pods are gated. */
import t from 'tap';
import { createRandom, seedOfRun } from '../random.ts';
import { startTcpProxy, startErrorProxy, type InjectedError } from './faults/proxies.ts';
import { startFaultTest } from './faults/setup.ts';

const seed = seedOfRun();

const injected: readonly [InjectedError, ...InjectedError[]] = [
  { status: 409, reason: 'Conflict' },
  { status: 429, reason: 'TooManyRequests', headers: { 'retry-after': '1' } },
  { status: 429, reason: 'TooManyRequests' },
  { status: 500, reason: 'InternalError' },
  { status: 503, reason: 'ServiceUnavailable' },
  { status: 504, reason: 'Timeout', isForwarded: true },
  { status: 500, reason: 'InternalError', isForwarded: true },
];

void t.test('no pod is lost while the API server stops, loses connections or fails', async (t) => {
  t.comment(`E2E_SEED=${seed}`);
  const random = createRandom(seed);
  const faultTest = await startFaultTest(t);
  const { cluster } = faultTest;

  const alone = await faultTest.controller();
  await faultTest.leader();
  const restarted = await faultTest.podGroup({ name: 'restarted', count: 60, withUnknown: true });
  await restarted.gated();
  await cluster.stopApiServer();
  restarted.release();
  await cluster.startApiServer();
  await restarted.end();
  await alone.process.stop();

  const tcpProxy = await startTcpProxy(cluster.server);
  cluster.onStop(() => tcpProxy.close());
  const behind = await faultTest.controller({ name: 'behind', apiServer: tcpProxy.url });
  await faultTest.leader((name) => name === 'behind');
  const interrupted = await faultTest.podGroup({ name: 'interrupted', count: 60, withUnknown: true });
  await interrupted.gated();
  for (let time = 0; time < 8; time += 1) {
    tcpProxy.reset();
    if (time === 2) interrupted.release();
    await faultTest.changes(10, 200);
  }
  await interrupted.end();

  const standby = await faultTest.controller({ name: 'standby' });
  const held = await faultTest.podGroup({ name: 'held', count: 60, withUnknown: true });
  await held.gated();
  tcpProxy.hold(true);
  held.release();
  await faultTest.leader((name) => name === 'standby');
  tcpProxy.hold(false);
  await held.end();
  await Promise.all([behind.process.stop(), standby.process.stop()]);

  const errorProxy = await startErrorProxy(cluster, 'archwright-failing');
  const failing = await faultTest.controller({ name: 'failing', apiServer: errorProxy.url });
  await faultTest.leader((name) => name === 'failing');
  const podGroup = await faultTest.podGroup({ name: 'with-errors', count: 120, withUnknown: true });
  await podGroup.gated();
  errorProxy.rule = (method, path) => {
    // Without its Lease the controller would stop, which other tests cover.
    if (path.includes('/leases/')) return undefined;
    return random.chance(method === 'GET' ? 0.2 : 0.5) ? random.pick(injected) : undefined;
  };
  podGroup.release();
  await podGroup.end();
  t.comment(`injected errors: ${JSON.stringify([...errorProxy.errors])}`);
  t.ok(
    [409, 429, 500, 503].every((status) => errorProxy.errors.has(status)),
    'every kind of error was injected',
  );
  await failing.process.stop();
  await faultTest.clean();
});
