/** Failures while gates are removed: conflicts, refusals, a failing API server, defects, a stopped leader. */
import t, { type Test } from 'tap';
import { policyFor } from '../../../../src/policy/effective/policies.ts';
import type { Fault, KubeStore, Match, StoreRequest } from '../../../support/kube-store.ts';
import { archIn, createdAt, gated, path, startGates, termsOf, theirs } from './support.ts';
import { like } from '../../../support/like.ts';

const minute = 60_000;
const known = { both: 'amd64 arm64', arm: 'arm64' };
const patches = `PATCH ${path('web')}`;

const isPlacement = ({ verb, json }: StoreRequest): boolean =>
  verb === 'PATCH' && JSON.stringify(json).includes('/spec/affinity');

/** The gated pod `web`, which needs arm64, under a fault of the API server. */
async function startWithFault(t: Test, match: Match, fault: Fault) {
  const gates = await startGates(t, [], { known });
  gates.store.fault(match, fault);
  gates.store.put(path('web'), gated('web', ['arm']));
  return gates;
}

t.test('a pod that changed meanwhile is decided again, also when its time is long over', async (t) => {
  const annotations = { 'x.example/owner': 'somebody' };
  for (const ageMs of [0, 5 * minute, 60 * minute]) {
    const creationTimestamp = new Date(createdAt - ageMs).toISOString();
    const edited = gated('web', ['arm'], { nodeSelector: { zone: 'a' } }, { annotations, creationTimestamp });
    const gates = await startGates(t, [gated('web', ['arm'], {}, { creationTimestamp })], {
      known,
      step: (name) => {
        if (name.startsWith('before patch') && gates.steps.length === 1) gates.store.put(path('web'), edited);
      },
    });
    await gates.opened(1);
    const pod = gates.pod('web');
    t.strictSame(termsOf(pod), [archIn('arm64')]);
    t.strictSame(pod.spec.nodeSelector, { zone: 'a' }, 'the change of the other writer stays');
    t.equal(pod.metadata?.annotations?.['x.example/owner'], 'somebody');
    t.equal(gates.store.writes().length, 2);
    t.equal(await gates.series('archwright_gate_failures_total{reason="conflict"}'), 1);
  }
});

t.test('a pod that disappeared, was replaced, or lost our gate between decision and patch', async (t) => {
  const going = gated('web', ['arm'], {}, { uid: 'another', deletionTimestamp: 'x' });
  const opened = gated('web', ['arm'], { schedulingGates: [theirs] });
  const changes: readonly [string, (store: KubeStore) => unknown][] = [
    ['went', (store) => store.remove(path('web'))],
    ['replaced', (store) => store.put(path('web'), going)],
    ['opened by a person', (store) => store.put(path('web'), opened)],
  ];
  for (const [name, change] of changes) {
    const gates = await startGates(t, [gated('web', ['arm'])], {
      known,
      step: (step) => {
        if (step.startsWith('before patch')) change(gates.store);
      },
    });
    await gates.store.until(() => gates.store.received(patches).length === 1);
    await gates.pass(minute);
    t.equal(gates.store.received(patches).length, 1, name);
    t.strictSame(gates.events, [], name);
  }
});

t.test('if the placement is refused, only the gate is removed, and an event gives the reason', async (t) => {
  const message = 'Pod "web" is invalid: spec.affinity: Invalid value';
  const gates = await startWithFault(t, patches, { status: 422, causes: true, times: 1, message });
  await gates.opened(1);
  t.strictSame(gates.pod('web').spec.schedulingGates, [theirs]);
  t.equal(termsOf(gates.pod('web')), undefined);
  like(t, gates.events, [
    { type: 'Warning', reason: 'PlacementFailed', message: /may run on any architecture: .*spec\.affinity/u },
  ]);
  t.equal(await gates.series('archwright_gate_decisions_total{outcome="gate-only"}'), 1);
});

t.test('a pod without room for another annotation is placed without the record', async (t) => {
  const gates = await startGates(t, [], { known });
  const message = 'Pod "web" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes';
  const isRecorded = ({ verb, json }: StoreRequest): boolean =>
    verb === 'PATCH' && JSON.stringify(json).includes('arch.example~1decision');
  gates.store.fault(isRecorded, { status: 422, causes: true, message });
  gates.store.put(path('web'), gated('web', ['arm'], {}, { annotations: { 'x.example/large': '…' } }));
  await gates.opened(1);
  t.strictSame(termsOf(gates.pod('web')), [archIn('arm64')]);
  t.strictSame(gates.pod('web').metadata?.annotations, { 'x.example/large': '…' });
  t.strictSame(gates.events, []);
  t.equal(gates.store.received(patches).length, 2);
});

t.test('a patch that does not apply to a changed pod is computed again', async (t) => {
  const changing = await startGates(t, [], { known });
  let tries = 0;
  changing.store.fault(patches, {
    status: 422,
    times: 1,
    before: () => {
      tries += 1;
      changing.store.put(path('web'), gated('web', ['arm'], { nodeSelector: { zone: 'a' } }));
    },
  });
  changing.store.put(path('web'), gated('web', ['arm']));
  await changing.opened(1);
  t.equal(tries, 1);
  t.strictSame(termsOf(changing.pod('web')), [archIn('arm64')]);

  const often = await startGates(t, [], { known });
  const before = (): void => void often.store.put(path('web'), gated('web', ['arm']));
  often.store.fault(isPlacement, { status: 422, before });
  before();
  await often.pass(5.5 * minute);
  t.equal(often.isGated('web'), false, 'however often others change it');
  t.ok(((await often.series('archwright_gate_failures_total{reason="conflict"}')) ?? 0) > 5);
});

t.test('if a webhook refuses the placement, with any status, only the gate is removed', async (t) => {
  for (const status of [400, 403, 404, 405, 409, 418, 422]) {
    const message = 'admission webhook "quota.example" denied the request: no affinity here';
    const gates = await startWithFault(t, isPlacement, { status, message });
    await gates.pass(5 * minute);
    t.equal(gates.isGated('web'), status !== 422, `${status}: it may be temporary, except 422`);
    await gates.pass(minute / 2);
    t.equal(gates.isGated('web'), false, String(status));
    t.equal(termsOf(gates.pod('web')), undefined);
    like(t, gates.events, [{ reason: 'PlacementFailed' }], String(status));
  }
});

t.test('a refusal that is not about the pod is retried until the time limit', async (t) => {
  const gates = await startWithFault(t, patches, { status: 403, message: 'no right to patch pods' });
  await gates.pass(6 * minute);
  t.equal(gates.isGated('web'), true, 'removing the gate is forbidden too');
  const message = /^Scheduling gate not removed: .*no right to patch pods$/;
  like(t, gates.events, [{ type: 'Warning', reason: 'PlacementFailed', message }]);
  t.equal(await gates.series('archwright_gated_pods{age="older",reason="refused"}'), 1);
  const { length: tries } = gates.store.received(patches);
  t.ok(tries < 60, `${tries} tries in six minutes`);
  t.ok(((await gates.series('archwright_gate_failures_total{reason="refused"}')) ?? 0) > 5);
});

t.test('an exception for one pod does not stop others; its gate is removed at the time limit', async (t) => {
  const pods = [gated('web', ['arm'], {}, { labels: { poison: 'yes' } }), gated('fine', ['arm'])];
  const gates = await startGates(t, pods, {
    known,
    change: (leader) => ({
      ...leader,
      policies: {
        policyOf: ({ labels }) => {
          if (labels?.['poison'] !== undefined) throw new TypeError('a defect');
          return policyFor(leader.configuration());
        },
      },
    }),
  });
  await gates.opened(1);
  t.equal(gates.isGated('fine'), false);
  await gates.pass(4.9 * minute);
  t.equal(gates.isGated('web'), true);
  await gates.pass(0.6 * minute);
  await gates.opened(2);
  t.strictSame(gates.pod('web').spec.schedulingGates, [theirs]);
  like(t, gates.events, [{ reason: 'PlacementFailed', about: { name: 'web' } }]);
  t.ok(((await gates.series('archwright_gate_failures_total{reason="fault"}')) ?? 0) > 3);
});

t.test('a defect of lookups does not hold a pod beyond its time limit', async (t) => {
  const gates = await startGates(t, [gated('web', ['arm'])], {
    change: (leader) => ({ ...leader, factsOfPod: () => new Promise(() => undefined) }),
  });
  await gates.pass(5.2 * minute);
  await gates.opened(1);
  like(t, gates.events, [{ reason: 'PlacementFailed' }]);
});
