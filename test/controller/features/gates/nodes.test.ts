/** Nodes that cannot pull an image are excluded when a gate is removed, if `requirePullableNodes` is set. */
import t from 'tap';
import type { CredentialGroup } from '../../../../src/fleet/agents.ts';
import type { Fleet } from '../../../../src/fleet/fleet.ts';
import { classify } from '../../../../src/nodes/classify.ts';
import { groupByClass } from '../../../../src/nodes/node-classes.ts';
import { isIn, notIn, termOf } from '../../../support/placement-input.ts';
import { archIn, gated, startGates, termsOf } from './support.ts';

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
