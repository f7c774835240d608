/**
 * What a decision of a waiting pod needs: everything that its policy depends on, nodes that can pull, rollouts, and
 * pods beyond the bounds of the cache, which are read again.
 */
import t from 'tap';
import { sealsBy, watchRecordKey } from '../../../../src/cluster/record-seal.ts';
import type { LeaderContext } from '../../../../src/controller/lead/feature.ts';
import type { CredentialGroup } from '../../../../src/fleet/agents.ts';
import type { Fleet } from '../../../../src/fleet/fleet.ts';
import { classify } from '../../../../src/nodes/classify.ts';
import { groupByClass } from '../../../../src/nodes/node-classes.ts';
import type { ChosenSide } from '../../../../src/placement/decision.ts';
import { uncheckedRecord } from '../../../../src/placement/record/read.ts';
import { createPolicies, policyFor } from '../../../../src/policy/effective/policies.ts';
import { collectResources } from '../../../../src/policy/resources/collection.ts';
import { rollout } from '../../../policy/resources/objects.ts';
import { createSource } from '../../../policy/resources/source.ts';
import { isIn, notIn, requiring, termOf } from '../../../support/placement-input.ts';
import type { Pod } from '../../../../src/kube/api/objects.ts';
import { paths } from '../../../../src/kube/api/paths.ts';
import { keys } from '../../../../src/names/keys.ts';
import { systemClock } from '../../../../src/async/clock.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { controllerRef } from '../../objects.ts';
import { like } from '../../../support/like.ts';
import { archIn, gated, newStore, startGates, termsOf, theirs } from './support.ts';

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
  // The attempt under way ends.
  await gates.pass(2000);
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

function group(name: string): CredentialGroup {
  return { fingerprint: name, nodes: [`${name}-0`], architectures: ['arm64'] };
}

t.test('nodes that cannot pull are excluded only if the policy requires it', async (t) => {
  const repositories: string[] = [];
  const fleet: Pick<Fleet, 'pullable'> = {
    pullable: ({ reference }) => {
      repositories.push(reference.repository);
      return Promise.resolve({ able: [group('yes')], unable: [group('no')] });
    },
  };
  for (const requirePullableNodes of [true, false]) {
    const gates = await startGates(t, [gated('web', ['arm'])], {
      known: { arm: 'arm64' },
      configuration: { requirePullableNodes },
      change: (leader) => ({ ...leader, fleet: fleet as Fleet }),
    });
    await gates.opened(1);
    const [term] = termsOf(gates.pod('web')) ?? [];
    const excluded = requirePullableNodes ? [notIn('kubernetes.io/hostname', 'no-0')] : [];
    t.strictSame(term?.matchExpressions?.slice(1), excluded);
  }
  t.equal(repositories.length, 1, 'without the setting, the fleet is not queried');
});

t.test('agents that never respond delay expired pods by a second at most', async (t) => {
  const fleet: Pick<Fleet, 'pullable'> = {
    pullable: (_, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ able: [], unable: [] }));
      }),
  };
  const pods = Array.from({ length: 60 }, (_, index) => gated(`late-${index}`, ['arm']));
  const gates = await startGates(t, pods, {
    known: { arm: 'arm64' },
    configuration: { requirePullableNodes: true, maxGateDuration: 0 },
    change: (leader) => ({ ...leader, fleet: fleet as Fleet }),
  });
  await gates.pass(1000);
  await gates.opened(pods.length);
  t.strictSame(termsOf(gates.pod('late-59')), [archIn('arm64')]);
});

t.test('nodes whose runtime refuses an image are excluded when the gate is removed', async (t) => {
  const node = (name: string, containerRuntimeVersion: string): object => ({
    metadata: { name, labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/arch': 'amd64' } },
    status: { nodeInfo: { architecture: 'amd64', operatingSystem: 'linux', containerRuntimeVersion } },
  });
  const nodes = [node('old', 'containerd://1.7.24'), node('crio', 'cri-o://1.34.1')];
  const classified = nodes.flatMap((each) => classify(each) ?? []);
  const gates = await startGates(t, [gated('web', ['x86'])], {
    known: { x86: '386' },
    change: (leader) => ({ ...leader, nodeClasses: () => groupByClass(classified, new Map()) }),
  });
  await gates.opened(1);
  const requirements = [isIn('kubernetes.io/arch', '386', 'amd64'), notIn('kubernetes.io/hostname', 'crio')];
  t.strictSame(termsOf(gates.pod('web')), [termOf(...requirements)]);
});

const ownerReferences = [controllerRef('ReplicaSet', 'web-1')];
const pod = (name: string, image: string) =>
  gated(name, [image], {}, { ownerReferences, labels: { 'pod-template-hash': '1' } });

/** @param sides by name of the pod */
function withRollout(sides: Readonly<Record<string, ChosenSide>>, newPods = 'Choose') {
  const chosen: string[] = [];
  const rollouts = createSource({ ...rollout({ architecture: 'arm64' }), status: { newPods } } as object);
  const change: NonNullable<Parameters<typeof startGates>[2]>['change'] = (leader) => ({
    ...leader,
    policies: createPolicies({
      configuration: leader.configuration,
      controllerLeads: () => true,
      resources: collectResources({ rollouts }),
    }),
    rollouts: {
      choose: ({ metadata }) => {
        chosen.push(metadata?.name ?? '');
        return Promise.resolve(sides[metadata?.name ?? ''] ?? 'Other');
      },
    },
  });
  return { change, chosen };
}

t.test('each pod goes to the architecture that the leader chose', async (t) => {
  const { change, chosen } = withRollout({ a: 'Target', b: 'Other' });
  const known = { both: 'amd64 arm64', amd: 'amd64' };
  const all = [pod('a', 'both'), pod('b', 'both'), pod('c', 'amd')];
  const gates = await startGates(t, all, { known, change });
  await gates.opened(3);
  t.strictSame(termsOf(gates.pod('a')), [archIn('arm64')]);
  t.strictSame(uncheckedRecord(gates.pod('a')).rollout, { name: 'web', side: 'Target' });
  t.strictSame(termsOf(gates.pod('b')), [archIn('amd64')]);
  t.strictSame(uncheckedRecord(gates.pod('b')).rollout, { name: 'web', side: 'Other' });
  t.strictSame(termsOf(gates.pod('c')), [archIn('amd64')]);
  t.equal(uncheckedRecord(gates.pod('c')).rollout, undefined, 'its image lacks the architecture');
  t.strictSame(chosen.toSorted(), ['a', 'b']);
  // A placed pod only waits for the scheduler, so no event reports a missing architecture.
  await gates.pass(5000);
  t.strictSame(gates.events, []);
});

t.test('an unknown image delays the choice; at the time limit there is none', async (t) => {
  const { change, chosen } = withRollout({ a: 'Target', b: 'Target' });
  const configuration = { maxGateDuration: 10_000 };
  const gates = await startGates(t, [pod('a', 'later'), pod('b', 'never')], { change, configuration });
  await gates.pass(2000);
  t.strictSame(chosen, []);
  gates.known = { later: 'amd64 arm64' };
  gates.answer('later');
  await gates.opened(1);
  t.strictSame(termsOf(gates.pod('a')), [archIn('arm64')]);
  await gates.pass(20_000);
  await gates.opened(2);
  t.equal(gates.isGated('b'), false);
  t.strictSame(chosen, ['a']);
});

t.test('a pod beyond its time limit stays off the architecture of the rollout', async (t) => {
  const { change, chosen } = withRollout({ old: 'Target' });
  const creationTimestamp = '2026-10-31T00:00:00Z';
  const { metadata, ...old } = pod('old', 'both');
  const expired = { ...old, metadata: { ...metadata, creationTimestamp } };
  const gates = await startGates(t, [expired], { known: { both: 'amd64 arm64' }, change });
  await gates.opened(1);
  t.strictSame(termsOf(gates.pod('old')), [archIn('amd64')]);
  t.strictSame(chosen, []);
});

const [namespace, name] = ['archwright', 'archwright-webhook-path'];

/** Another webhook prefers amd64; the record claims that archwright added this. */
const preferred = [{ weight: 5, preference: archIn('amd64') }];
const record = { v: 1, outcome: 'gated', imagesKey: 'x', added: { preferred: [['amd64', 5]] } };
const spec = { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } } };

const preferredOf = ({ spec }: Pod): unknown =>
  spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution;

for (const [when, data] of [
  ['the Secret of the key does not exist', undefined],
  ['the Secret has no key', { current: Buffer.from('T'.repeat(64)).toString('base64') }],
] as const) {
  t.test(`attack: a forged record removes nothing if ${when}`, async (t) => {
    const time = createFakeClock();
    const store = await newStore(t, time);
    if (data) store.put(paths.secrets(namespace, name), { metadata: { namespace, name }, data });
    const sealed = (leader: LeaderContext): LeaderContext => {
      const { client, log } = leader;
      const watch = watchRecordKey({ client, namespace, name, clock: systemClock, log });
      t.teardown(() => watch.close());
      return { ...leader, sealOf: sealsBy(watch.key) };
    };
    const annotations = { [keys.decision]: JSON.stringify(record) };
    const pod = gated('web', ['arm'], spec, { annotations });
    const gates = await startGates(t, [pod], { known: { arm: 'arm64' }, time, store, change: sealed });
    await gates.opened(1);
    t.strictSame(preferredOf(gates.pod('web')), preferred);
  });
}

const mebibyte = 1024 * 1024;

/** The cache holds two pods of a mebibyte per namespace, and 16 MiB of large waiting pods in total. */
const large = Array.from({ length: 16 }, (_, index) => {
  const values = Array.from({ length: 1024 }, (_, each) => `${index}-${each}-`.padEnd(1024, 'v'));
  const spec = requiring(termOf(isIn('zone', ...values)));
  return gated(`large-${String(index).padStart(2, '0')}`, ['both'], spec);
});

t.test('pods that exceed the bounds are placed, a few per second', async (t) => {
  const gates = await startGates(t, [...large, gated('small', ['both'])], { known: { both: 'amd64 arm64' } });
  const refused = (await gates.series('archwright_controller_large_objects{watch="waitingPods"}')) ?? 0;
  t.ok(refused >= 8, `${refused} pods`);
  await gates.opened(large.length - refused + 1);
  t.notOk(gates.isGated('small'));
  await gates.pass(25_000);
  await gates.opened(large.length + 1);
  const reads = gates.store.received(/^GET .*\/pods\/large-/);
  t.equal(reads.length, refused, 'one read per pod');
  for (const { metadata } of large) {
    const pod = gates.pod(metadata?.name ?? '');
    const [term] = termsOf(pod) ?? [];
    t.equal(JSON.stringify(term).length > mebibyte, true, 'its own affinity stays');
    like(t, term?.matchExpressions?.at(-1), isIn('kubernetes.io/arch', 'amd64', 'arm64'));
    t.strictSame(pod.spec.schedulingGates, [theirs]);
  }
});

t.test('a pod beyond the bounds that is not found, although the cache has it, is read again', async (t) => {
  const gates = await startGates(t, [...large, gated('small', ['both'])]);
  const end = gates.store.fault(/^GET .*\/pods\/large-/, { status: 404 });
  gates.known = { both: 'amd64' };
  gates.answer();
  await gates.pass(30_000);
  t.ok(gates.isGated('large-15'));
  t.notOk(gates.isGated('small'));
  const { length: reads } = gates.store.received(/^GET .*\/pods\/large-/);
  end();
  // Reading a large pod takes real time, so no number of seconds of the fake clock is enough.
  await gates.store.until(async () => {
    await gates.pass(1000);
    return !gates.isGated('large-15');
  });
  t.ok(reads < 100, `${reads} reads in half a minute`);
});
