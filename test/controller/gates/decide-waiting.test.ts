/** Nodes that cannot pull are left out when a gate is opened, where policy wants that. */
import t from 'tap';
import type { Fleet } from '../../../src/fleet/fleet.ts';
import { classify } from '../../../src/nodes/classify.ts';
import { groupByClass } from '../../../src/nodes/node-classes.ts';
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

void t.test('nodes that cannot pull or run an image are left out when a gate is opened', async (t) => {
  const node = (name: string, containerRuntimeVersion: string): object => ({
    metadata: { name, labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/arch': 'amd64' } },
    status: { nodeInfo: { architecture: 'amd64', operatingSystem: 'linux', containerRuntimeVersion } },
  });
  const gates = await startGates(t, [gated('web', ['x86'])], {
    known: { x86: '386' },
    change: (leading) => ({
      ...leading,
      nodeClasses: () =>
        groupByClass(
          [node('old', 'containerd://1.7.24'), node('crio', 'cri-o://1.34.1')].flatMap(
            (each) => classify(each) ?? [],
          ),
          new Map(),
        ),
    }),
  });
  await gates.opened(1);
  t.same(termsOf(gates.pod('web')), [
    {
      matchExpressions: [
        { key: 'kubernetes.io/arch', operator: 'In', values: ['386', 'amd64'] },
        { key: 'kubernetes.io/hostname', operator: 'NotIn', values: ['crio'] },
      ],
    },
  ]);
});
