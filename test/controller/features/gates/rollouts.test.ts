/** Pods of a rollout stay gated until the leader has chosen their architecture. */
import t from 'tap';
import { createPolicies } from '../../../../src/policy/effective/policies.ts';
import { collectResources } from '../../../../src/policy/resources/collection.ts';
import { uncheckedRecord } from '../../../../src/placement/record/read.ts';
import type { ChosenSide } from '../../../../src/placement/decision.ts';
import { rollout } from '../../../policy/resources/objects.ts';
import { createSource } from '../../../policy/resources/source.ts';
import { controllerRef } from '../../objects.ts';
import { archIn, gated, startGates, termsOf } from './support.ts';

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
