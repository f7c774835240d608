/** From settings and custom resources to the pod: what a policy adds besides architectures, through the whole decision. */
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

interface Case {
  readonly configuration?: Partial<Configuration>;
  readonly cluster?: object;
  readonly pods?: readonly object[];
  readonly image?: string;
  /** JSON of the patch holds these, and not those. */
  readonly has?: readonly string[];
  readonly hasNot?: readonly string[];
}

const toleration = (key: string, value: string): string =>
  `{"key":"${key}","operator":"Equal","value":"${value}","effect":"NoSchedule"}`;
const prefers = (architecture: string, weight: number): string =>
  `{"weight":${weight},"preference":{"matchExpressions":[{"key":"kubernetes.io/arch","operator":"In","values":["${architecture}"]}]}}`;
const scoring = (architecture: string, weight: number): object => ({
  plugins: { nodeAffinityScoring: { enabled: true, platforms: [{ architecture, weight }] } },
});

const cases: Readonly<Record<string, Case>> = {
  'the well-known taint by default': {
    has: [toleration('kubernetes.io/arch', 'amd64'), toleration('kubernetes.io/arch', 'arm64')],
  },
  'the well-known taint, off': {
    configuration: { tolerateArchitectureTaint: false },
    hasNot: ['tolerations'],
  },
  'our own taint': {
    configuration: { taintArchitectures: ['arm64'], taintKey: 'pool.example/arch' },
    has: [toleration('pool.example/arch', 'amd64'), toleration('pool.example/arch', 'arm64')],
  },
  'a template': {
    configuration: { tolerations: [{ key: 'supported-arch', operator: 'Equal', effect: 'NoExecute' }] },
    has: ['{"key":"supported-arch","operator":"Equal","value":"arm64","effect":"NoExecute"}'],
  },
  'taints and labels of an architecture': {
    configuration: {
      architectures: {
        arm64: {
          taintsToTolerate: [{ key: 'arm-only', operator: 'Exists', effect: 'NoSchedule' }],
          requireNodeLabels: { pool: 'arm' },
        },
      },
    },
    has: [
      '{"key":"arm-only","operator":"Exists","effect":"NoSchedule"}',
      '{"key":"kubernetes.io/arch","operator":"In","values":["arm64"]},{"key":"pool","operator":"In","values":["arm"]}',
    ],
  },
  'the same where the images have other architectures': {
    configuration: {
      architectures: {
        s390x: { taintsToTolerate: [{ key: 'z', operator: 'Exists' }], requireNodeLabels: { z: 'z' } },
      },
    },
    hasNot: ['"z"'],
  },
  'labels that the node must share': {
    configuration: { matchNodeLabels: ['pool', 'zone'] },
    has: ['{"key":"pool","operator":"In","values":["fast"]}'],
    hasNot: ['zone'],
  },
  'weights, soft': {
    configuration: { preferredWeights: { arm64: 80, amd64: 20 } },
    has: [prefers('arm64', 80), prefers('amd64', 20)],
    hasNot: ['nodeSelector/'],
  },
  hard: {
    configuration: { preferredWeights: { arm64: 80, amd64: 20 }, preferenceMode: 'hard' },
    has: [
      '/spec/nodeSelector","value":{"kubernetes.io/arch":"arm64"}',
      toleration('kubernetes.io/arch', 'arm64'),
    ],
    hasNot: ['preferredDuring', toleration('kubernetes.io/arch', 'amd64')],
  },
  'the cluster over the configuration': {
    configuration: { preferredArchitecture: 'arm64' },
    cluster: scoring('amd64', 7),
    has: [prefers('amd64', 7)],
    hasNot: [prefers('arm64', 100)],
  },
  'an object that selects the pod over both, as hard as the configuration says': {
    configuration: { preferredArchitecture: 'amd64', preferenceMode: 'hard' },
    cluster: { preferredArchitecture: 'amd64' },
    pods: [{ labelSelector: { matchLabels: { app: 'web' } }, ...scoring('arm64', 3) }],
    has: ['{"kubernetes.io/arch":"arm64"}'],
  },
  'an object that selects other pods': {
    cluster: { preferredArchitecture: 'amd64' },
    pods: [{ labelSelector: { matchLabels: { app: 'api' } }, ...scoring('arm64', 3) }],
    has: [prefers('amd64', 100)],
    hasNot: ['"weight":3'],
  },
  'a first preference that the images cannot meet gives way to the next': {
    cluster: scoring('arm64', 9),
    pods: [scoring('s390x', 5)],
    has: [prefers('arm64', 9)],
    hasNot: ['s390x'],
  },
  'an unknown image under an object with a fallback': {
    configuration: { fallbackArchitecture: 'amd64' },
    pods: [{ fallbackArchitecture: 'arm64', onUnknownImage: 'fallback' }],
    image: 'unknown',
    has: ['"values":["arm64"]', toleration('kubernetes.io/arch', 'arm64')],
    hasNot: ['schedulingGates'],
  },
  'an unknown image while a controller leads': {
    image: 'unknown',
    has: ['schedulingGates', 'arch.example/scheduling-gate'],
  },
  'a namespace that is left out': {
    cluster: { namespaceSelector: { matchLabels: { team: 'b' } }, preferredArchitecture: 'arm64' },
    hasNot: ['op'],
  },
};

t.test('what is added to a pod', async (t) => {
  for (const [
    about,
    { configuration, cluster, pods = [], image = 'app', has = [], hasNot = [] },
  ] of Object.entries(cases)) {
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
      facts: (asked) => (asked === 'app' ? facts('amd64 arm64') : undefined),
    });
    const patch = JSON.stringify(
      patchPod(subject, decision).filter(({ path }) => !path.includes('annotations')),
    );
    for (const text of has) t.ok(patch.includes(text), `${about}: ${text}\n${patch}`);
    for (const text of hasNot) t.notOk(patch.includes(text), `${about}: not ${text}\n${patch}`);
  }
});
