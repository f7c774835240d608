import { join } from 'node:path';
import t, { type Test } from 'tap';
import '../../cmd/controller.ts';
import { run } from './run.ts';
import { storeWithConfig } from './world.ts';
import { like } from '../support/like.ts';

const lease = '/apis/coordination.k8s.io/v1/namespaces/archwright/leases/archwright-controller';

async function cluster(t: Test) {
  const { store, config } = await storeWithConfig(t);
  const args = ['controller', '--kubeconfig', config, '--metrics-listen', '127.0.0.1:0'];
  return { store, args: [...args, '--namespace', 'archwright'] };
}

t.test('it leads, and ends on a stop signal', async (t) => {
  const { store, args } = await cluster(t);
  const stop = new AbortController();
  const env = { HOSTNAME: 'controller-7' };
  const running = run([...args, '--agent-tls-dir', join(t.testdir(), 'tls')], { env, stop: stop.signal });
  await store.until(() => store.get(lease) !== undefined, 'the Lease');
  like(t, store.get(lease), { spec: { holderIdentity: /^controller-7_[0-9a-f]{8}$/ } });
  await store.until(() => store.watches('/api/v1/nodes') > 0, 'the watches of the leader');
  stop.abort('SIGTERM');
  const { code, err } = await running;
  t.equal(code, 0);
  like(t, store.get(lease), { spec: { holderIdentity: '' } });
  t.match(err, /the controller is running/);
  await store.until(() => store.watches() === 0, 'the watches to end');
});
