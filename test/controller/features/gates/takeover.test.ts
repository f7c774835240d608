/** A new leader whose cache has pods before everything that their policy depends on. */
import t from 'tap';
import type { LeaderContext } from '../../../../src/controller/lead/feature.ts';
import { policyFor } from '../../../../src/policy/effective/policies.ts';
import { archIn, gated, startGates, termsOf } from './support.ts';

const known = { arm: 'arm64', both: 'amd64 arm64' };

type Lists = 'namespaces' | 'clusterConfigs' | 'podConfigs' | 'nodes';

/** A leader with one cache that is not listed until `list` is called. */
function late(cache: Lists) {
  const first = Promise.withResolvers<void>();
  let listed = false;
  return {
    list: () => {
      listed = true;
      first.resolve();
    },
    change: (leader: LeaderContext): LeaderContext => {
      const full = leader.caches[cache];
      const empty = {
        onEach: full.onEach.bind(full),
        onChange: full.onChange.bind(full),
        ready: () => first.promise,
        get: (namespace: string, name: string) => (listed ? full.get(namespace, name) : undefined),
        values: () => (listed ? full.values() : []),
      };
      return { ...leader, caches: { ...leader.caches, [cache]: empty } };
    },
  };
}

t.test('a pod older than the leader is decided once its policy is known', async (t) => {
  for (const cache of ['namespaces', 'clusterConfigs', 'podConfigs', 'nodes'] as const) {
    const lists = late(cache);
    const gates = await startGates(t, [gated('web', ['arm'])], { known, change: lists.change });
    await gates.pass(9_000);
    t.equal(gates.isGated('web'), true, cache);
    lists.list();
    await gates.opened(1);
    t.strictSame(termsOf(gates.pod('web')), [archIn('arm64')], cache);
  }
});

t.test('a cache that can never be listed delays pods for a bounded time', async (t) => {
  const gates = await startGates(t, [gated('web', ['arm'])], { known, change: late('podConfigs').change });
  await gates.pass(10_500);
  await gates.opened(1);
  t.ok(gates.lines.some((line) => line.includes('deciding gated pods without them')));
});

t.test('facts of images that the pod no longer has do not decide it', async (t) => {
  const gates = await startGates(t, [gated('web', ['old'])], {
    configuration: { fallbackArchitecture: 'amd64', maxGateDuration: 20_000 },
    change: (leader) => ({ ...leader, policies: { policyOf: () => policyFor(leader.configuration()) } }),
  });
  await gates.store.until(() => gates.lookups.length === 1);
  gates.store.put('/api/v1/namespaces/shop/pods/web', gated('web', ['new']));
  await gates.store.until(() => gates.lookups.length === 2);
  gates.known = { old: 'amd64' };
  gates.answer('old');
  await gates.pass(1000);
  t.equal(gates.isGated('web'), true);
  t.equal(gates.lookups.length, 2, 'the lookup of the new image is still open, and not repeated');
  t.equal(await gates.series('archwright_gated_pods{age="10s",reason="lookup"}'), 1);
  gates.known = { new: 'arm64' };
  gates.answer();
  await gates.opened(1);
  t.strictSame(termsOf(gates.pod('web')), [archIn('arm64')]);
});
