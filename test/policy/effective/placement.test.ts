/** From settings and custom resources to the patch of a pod: how they act together. */
import t from 'tap';
import type { Pod } from '../../../src/kube/api/objects.ts';
import { decide } from '../../../src/placement/decide.ts';
import { patchPod } from '../../../src/placement/patch/patch.ts';
import { defaultConfiguration, type Configuration } from '../../../src/policy/configuration/configuration.ts';
import { createPolicies } from '../../../src/policy/effective/policies.ts';
import { facts } from '../../support/placement-input.ts';
import { clusterConfig, podConfig } from '../resources/objects.ts';
import { createSource } from '../resources/source.ts';

const pod: Pod = {
  metadata: { name: 'web', namespace: 'shop', labels: { app: 'web', pool: 'fast' } },
  spec: { containers: [{ name: 'app', image: 'app' }] },
};

interface Given {
  readonly configuration?: Partial<Configuration>;
  readonly cluster?: object;
  readonly pods?: readonly object[];
  readonly image?: string;
}
/** The JSON of the patch contains `has` and does not contain `hasNot`. */
type Case = readonly [given: Given, has: readonly string[], hasNot?: readonly string[]];

const toleration = (key: string, value: string): string =>
  `{"key":"${key}","operator":"Equal","value":"${value}","effect":"NoSchedule"}`;
const prefers = (architecture: string, weight: number): string =>
  `{"weight":${weight},"preference":{"matchExpressions":[{"key":"kubernetes.io/arch","operator":"In","values":["${architecture}"]}]}}`;
const scoring = (architecture: string, weight: number): object => ({
  plugins: { nodeAffinityScoring: { enabled: true, platforms: [{ architecture, weight }] } },
});

const set = (configuration: Partial<Configuration>): Given => ({ configuration });
const weights = { preferredWeights: { arm64: 80, amd64: 20 } };
const isApp = (app: string): object => ({ labelSelector: { matchLabels: { app } } });

const cases: Readonly<Record<string, Case>> = {
  'taints and labels of an architecture': [
    set({
      architectures: {
        arm64: {
          taintsToTolerate: [{ key: 'arm-only', operator: 'Exists', effect: 'NoSchedule' }],
          requireNodeLabels: { pool: 'arm' },
        },
      },
    }),
    [
      '{"key":"arm-only","operator":"Exists","effect":"NoSchedule"}',
      '{"key":"kubernetes.io/arch","operator":"In","values":["arm64"]},{"key":"pool","operator":"In","values":["arm"]}',
    ],
  ],
  'weights, hard': [
    set({ ...weights, preferenceMode: 'hard' }),
    ['/spec/nodeSelector","value":{"kubernetes.io/arch":"arm64"}', toleration('kubernetes.io/arch', 'arm64')],
    ['preferredDuring', toleration('kubernetes.io/arch', 'amd64')],
  ],
  'an object that selects the pod overrides both, in the configured mode': [
    {
      ...set({ preferredArchitecture: 'amd64', preferenceMode: 'hard' }),
      cluster: { preferredArchitecture: 'amd64' },
      pods: [{ ...isApp('web'), ...scoring('arm64', 3) }],
    },
    ['{"kubernetes.io/arch":"arm64"}'],
  ],
  'if the images cannot meet the first preference, the next applies': [
    { cluster: scoring('arm64', 9), pods: [scoring('s390x', 5)] },
    [prefers('arm64', 9)],
    ['s390x'],
  ],
  'an unknown image and an object with a fallback': [
    {
      ...set({ fallbackArchitecture: 'amd64' }),
      pods: [{ fallbackArchitecture: 'arm64', onUnknownImage: 'fallback' }],
      image: 'unknown',
    },
    ['"values":["arm64"]', toleration('kubernetes.io/arch', 'arm64')],
    ['schedulingGates'],
  ],
};

t.test('a policy leads to the expected patch', async (t) => {
  for (const [about, [given, has, hasNot = []]] of Object.entries(cases)) {
    const { configuration, cluster, pods = [], image = 'app' } = given;
    const inForce = { ...defaultConfiguration(), ...configuration };
    const policies = createPolicies({
      configuration: () => inForce,
      controllerLeads: () => true,
      clusterConfigs: createSource(...(cluster ? [clusterConfig(cluster)] : [])),
      podConfigs: createSource(...pods.map((spec, index) => podConfig(spec, `p${index}`))),
    });
    const namespaceLabels = { 'kubernetes.io/metadata.name': 'shop' };
    const subject = { ...pod, spec: { containers: [{ name: 'app', image }] } };
    const decision = decide({
      pod: subject,
      namespace: 'shop',
      namespaceLabels,
      policy: policies.policyOf({ namespace: 'shop', namespaceLabels, labels: subject.metadata?.labels }),
      facts: (image) => (image === 'app' ? facts('amd64 arm64') : undefined),
    });
    const patch = JSON.stringify(
      patchPod(subject, decision).filter(({ path }) => !path.includes('annotations')),
    );
    for (const text of has) t.ok(patch.includes(text), `${about}: ${text}\n${patch}`);
    for (const text of hasNot) t.notOk(patch.includes(text), `${about}: not ${text}\n${patch}`);
  }
});
