/** Nodes that cannot pull are left out when a gate is opened, where policy wants that. */
import t from 'tap';
import type { Fleet } from '../../../src/fleet/fleet.ts';
import { gated, startGates, termsOf } from './support.ts';

function group(name: string): { name: string; nodes: string[]; architectures: string[] } {
  return { name, nodes: [`${name}-0`], architectures: ['arm64'] };
}

void t.test('nodes that cannot pull', async (t) => {
  const asked: string[] = [];
  let looks = 0;
  const fleet: Pick<Fleet, 'pullable'> = {
    pullable: ({ reference }) => {
      asked.push(reference.repository);
      return { able: [group('yes')], unable: [group('no')] };
    },
  };
  for (const requirePullableNodes of [true, false]) {
    const gates = await startGates(t, [gated('web', ['arm'])], {
      known: { arm: 'arm64' },
      configuration: { requirePullableNodes },
      change: (leading) => ({
        ...leading,
        fleet: fleet as Fleet,
        pullSecrets: { ...leading.pullSecrets, mayHave: () => ++looks < 0 },
      }),
    });
    await gates.opened(1);
    const [term] = termsOf(gates.pod('web')) as { matchExpressions: unknown[] }[];
    t.same(
      term?.matchExpressions.slice(1),
      requirePullableNodes ? [{ key: 'kubernetes.io/hostname', operator: 'NotIn', values: ['no-0'] }] : [],
    );
  }
  t.equal(asked.length, 1, 'nobody is asked where nobody wants to know');
  t.equal(looks, 1, 'by the pull secrets that all of the leader share');
});

void t.test('agents that never answer do not hold expired pods', async (t) => {
  const fleet: Pick<Fleet, 'pullable'> = {
    pullable: () => ({ able: [], unable: [], pending: new Promise(() => undefined) }),
  };
  const pods = Array.from({ length: 60 }, (_, index) => gated(`late-${index}`, ['arm']));
  // One after the other, each with the second that a pod in time may wait, would take a minute; `opened` waits ten seconds.
  const gates = await startGates(t, pods, {
    known: { arm: 'arm64' },
    configuration: { requirePullableNodes: true, maxGateDuration: 0, gateWorkers: 1 },
    change: (leading) => ({ ...leading, fleet: fleet as Fleet }),
  });
  await gates.opened(pods.length);
  t.same(
    pods.filter(({ metadata }) => gates.isGated(metadata?.name ?? '')),
    [],
  );
});
