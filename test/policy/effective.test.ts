import t from 'tap';
import { defaultConfiguration, type Configuration } from '../../src/policy/configuration.ts';
import { policyFor } from '../../src/policy/effective.ts';

function policy(values: Partial<Configuration>) {
  return policyFor({ ...defaultConfiguration(), ...values });
}

const architectureTaint = { key: 'kubernetes.io/arch', operator: 'Equal', effect: 'NoSchedule' } as const;

t.test('nothing set', async (t) => {
  t.same(policy({}), {
    schedulableArchitectures: [],
    preference: undefined,
    fallbackArchitecture: undefined,
    onUnknownImage: 'allow',
    onNoCommonArchitecture: 'deny',
    matchNodeLabels: [],
    tolerations: [architectureTaint],
    architectures: {},
    excludedNamespaces: ['kube-system'],
    requirePullableNodes: false,
  });
});

t.test('preference', async (t) => {
  const origin = 'configuration';
  t.same(policy({ preferredArchitecture: 'arm64' }).preference, {
    weights: { arm64: 100 },
    mode: 'soft',
    origin,
  });
  t.same(policy({ preferredWeights: { arm64: 80, amd64: 20 }, preferenceMode: 'hard' }).preference, {
    weights: { arm64: 80, amd64: 20 },
    mode: 'hard',
    origin,
  });
});

t.test('unknown images', async (t) => {
  t.equal(policy({ fallbackArchitecture: 'amd64' }).onUnknownImage, 'fallback');
  t.equal(policy({ fallbackArchitecture: 'amd64', onUnknownImage: 'deny' }).onUnknownImage, 'deny');
  t.equal(policy({ onUnknownImage: 'gate' }).onUnknownImage, 'gate');
});

t.test('tolerations', async (t) => {
  const other = { key: 'arch', operator: 'Equal' } as const;
  t.same(policy({ tolerations: [other] }).tolerations, [other, architectureTaint]);
  t.same(policy({ tolerations: [other], tolerateArchitectureTaint: false }).tolerations, [other]);
  const covering = { key: 'kubernetes.io/arch', operator: 'Equal' } as const;
  t.same(policy({ tolerations: [covering] }).tolerations, [covering], 'every effect covers NoSchedule');
  t.same(policy({ tolerations: [architectureTaint] }).tolerations, [architectureTaint]);
  const narrower = { ...covering, effect: 'NoExecute' } as const;
  t.same(policy({ tolerations: [narrower] }).tolerations, [narrower, architectureTaint]);
});

t.test('nodes that cannot pull', async (t) => {
  t.equal(policy({ requirePullableNodes: true }).requirePullableNodes, true);
});

t.test('our own namespace is left alone besides those that are named', async (t) => {
  t.same(policy({ namespace: 'archwright' }).excludedNamespaces, ['kube-system', 'archwright']);
  t.same(policy({ namespace: 'a', excludedNamespaces: ['a', 'b'] }).excludedNamespaces, ['a', 'b']);
  t.same(policy({ namespace: 'a', excludedNamespaces: [] }).excludedNamespaces, ['a']);
});
