/**
 * Custom resources that are right and wrong, for whoever judges them: the reader here, a real API server in
 * `test/e2e/cluster/custom-resources.test.ts`. Both must come to the same end.
 */
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { architecturesOfNodes, namesElsewhere } from '../../../src/policy/value-kinds/architectures.ts';

export interface ObjectCase {
  readonly about: string;
  readonly object: KubeObject & { readonly spec?: unknown };
  /** What the API server says where it refuses the object; absent: it takes it. */
  readonly refused?: RegExp;
  /** The server refuses it, the reader has no need to. */
  readonly isReadable?: true;
}

const apiVersion = 'arch.example/v1alpha1';

export function clusterConfig(spec: unknown, name = 'cluster'): KubeObject & { readonly spec?: unknown } {
  return { apiVersion, kind: 'ClusterPodPlacementConfig', metadata: { name }, spec };
}

export function podConfig(spec: unknown, name = 'web', namespace = 'shop'): KubeObject & { spec?: unknown } {
  return { apiVersion, kind: 'PodPlacementConfig', metadata: { name, namespace }, spec };
}

const scoring = (platforms: unknown, enabled: unknown = true): unknown => ({
  plugins: { nodeAffinityScoring: { enabled, platforms } },
});

const arm = { architecture: 'arm64', weight: 80 };
const seventeen = Array.from({ length: 17 }, (_, index) => ({ architecture: `a${index}`, weight: 1 }));
const long = 'a'.repeat(64);
const notOfNodes = /no node has this architecture; use lower case/;

const clusterCases: readonly ObjectCase[] = [
  { about: 'nothing set', object: clusterConfig({}) },
  {
    about: 'all set',
    object: clusterConfig({
      logVerbosity: 'Debug',
      namespaceSelector: {
        matchLabels: { 'example.com/team': 'shop', empty: '' },
        matchExpressions: [
          { key: 'tier', operator: 'NotIn', values: ['system', ''] },
          { key: 'kubernetes.io/metadata.name', operator: 'Exists' },
          { key: 'legacy', operator: 'DoesNotExist', values: [] },
        ],
      },
      fallbackArchitecture: 'amd64',
      plugins: {
        nodeAffinityScoring: { enabled: true, platforms: [arm, { architecture: 'amd64', weight: 1 }] },
        execFormatErrorMonitor: { enabled: false },
      },
    }),
  },
  { about: 'a preferred architecture', object: clusterConfig({ preferredArchitecture: 'arm64' }) },
  {
    about: 'a preferred architecture beside scoring that is off',
    object: clusterConfig({ preferredArchitecture: 'arm64', ...(scoring([arm], false) as object) }),
  },
  {
    about: 'a preferred architecture and scoring',
    object: clusterConfig({ preferredArchitecture: 'arm64', ...(scoring([arm]) as object) }),
    refused: /not both/,
  },
  {
    about: 'another name',
    object: clusterConfig({}, 'default'),
    refused: /its name is cluster/,
  },
  {
    about: 'no spec',
    object: { apiVersion, kind: 'ClusterPodPlacementConfig', metadata: { name: 'cluster' } },
    refused: /spec: Required value/,
    isReadable: true,
  },
  ...['Normal', 'Debug', 'Trace', 'TraceAll'].map((logVerbosity) => ({
    about: `verbosity ${logVerbosity}`,
    object: clusterConfig({ logVerbosity }),
  })),
  {
    about: 'an unknown verbosity',
    object: clusterConfig({ logVerbosity: 'debug' }),
    refused: /Unsupported value: "debug"/,
  },
  {
    about: 'a monitor without enabled',
    object: clusterConfig({ plugins: { execFormatErrorMonitor: {} } }),
    refused: /enabled: Required value/,
    isReadable: true,
  },
  {
    about: 'a monitor that is a text',
    object: clusterConfig({ plugins: { execFormatErrorMonitor: { enabled: 'yes' } } }),
    refused: /must be of type boolean/,
  },
  {
    about: 'plugins as a list',
    object: clusterConfig({ plugins: [] }),
    refused: /must be of type object/,
  },
  {
    about: 'a preferred architecture with the name that it has elsewhere',
    object: clusterConfig({ preferredArchitecture: 'x86_64' }),
    refused: notOfNodes,
  },
  {
    about: 'an empty preferred architecture',
    object: clusterConfig({ preferredArchitecture: '' }),
    refused: /preferredArchitecture/,
  },
  {
    about: 'a number as architecture',
    object: clusterConfig({ fallbackArchitecture: 64 }),
    refused: /must be of type string/,
  },
  {
    about: 'an empty selector',
    object: clusterConfig({ namespaceSelector: {} }),
  },
];

/** Selectors stand in both kinds. */
const selectors: readonly (Omit<ObjectCase, 'object'> & { readonly selector: unknown })[] = [
  { about: 'selector: a text', selector: 'app=web', refused: /must be of type object/ },
  { about: 'selector: labels as a list', selector: { matchLabels: [] }, refused: /must be of type object/ },
  {
    about: 'selector: expressions as an object',
    selector: { matchExpressions: {} },
    refused: /must be of type array/,
  },
  {
    about: 'selector: a value that is no label value',
    selector: { matchLabels: { app: 'not a value' } },
    refused: /should match/,
  },
  {
    about: 'selector: a value that is too long',
    selector: { matchLabels: { app: long } },
    refused: /Too long/,
  },
  {
    about: 'selector: a value that is a number',
    selector: { matchLabels: { app: 1 } },
    refused: /must be of type string/,
  },
  {
    about: 'selector: a key that is no label key',
    selector: { matchLabels: { 'not a key': 'x' } },
    refused: /must be a label key/,
  },
  {
    about: 'selector: a key with two slashes',
    selector: { matchLabels: { 'a/b/c': 'x' } },
    refused: /must be a label key/,
  },
  {
    about: 'selector: a key whose name is too long',
    selector: { matchLabels: { [`example.com/${long}`]: 'x' } },
    refused: /must be a label key/,
  },
  {
    about: 'selector: an expression without a key',
    selector: { matchExpressions: [{ operator: 'Exists' }] },
    refused: /key: Required value/,
  },
  {
    about: 'selector: an expression whose key is no label key',
    selector: { matchExpressions: [{ key: '-x', operator: 'Exists' }] },
    refused: /should match/,
  },
  {
    about: 'selector: an expression without an operator',
    selector: { matchExpressions: [{ key: 'app' }] },
    refused: /operator: Required value/,
  },
  {
    about: 'selector: an operator of node selectors',
    selector: { matchExpressions: [{ key: 'app', operator: 'Gt', values: ['1'] }] },
    refused: /Unsupported value: "Gt"/,
  },
  {
    about: 'selector: In without values',
    selector: { matchExpressions: [{ key: 'app', operator: 'In' }] },
    refused: /In and NotIn require values/,
  },
  {
    about: 'selector: NotIn with an empty list',
    selector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: [] }] },
    refused: /In and NotIn require values/,
  },
  {
    about: 'selector: Exists with values',
    selector: { matchExpressions: [{ key: 'app', operator: 'Exists', values: ['web'] }] },
    refused: /must have none/,
  },
  {
    about: 'selector: a value in an expression that is no label value',
    selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['web', 'a b'] }] },
    refused: /should match/,
  },
  {
    about: 'selector: an expression that is a text',
    selector: { matchExpressions: ['app'] },
    refused: /must be of type object/,
  },
];

const preferences: readonly (Omit<ObjectCase, 'object'> & { readonly spec: unknown })[] = [
  { about: 'scoring', spec: scoring([arm]) },
  {
    about: 'scoring with weights 1 and 100',
    spec: scoring([
      { ...arm, weight: 1 },
      { architecture: 'b', weight: 100 },
    ]),
  },
  {
    about: 'scoring that is off, without platforms',
    spec: { plugins: { nodeAffinityScoring: { enabled: false } } },
  },
  {
    about: 'scoring without enabled',
    spec: { plugins: { nodeAffinityScoring: { platforms: [arm] } } },
    refused: /enabled: Required value/,
    isReadable: true,
  },
  { about: 'scoring without platforms', spec: scoring(undefined), refused: /platforms must not be empty/ },
  { about: 'scoring with no platform', spec: scoring([]), refused: /platforms must not be empty/ },
  { about: 'platforms that are no list', spec: scoring(arm), refused: /must be of type array/ },
  { about: 'a platform that is a text', spec: scoring(['arm64']), refused: /must be of type object/ },
  { about: 'seventeen platforms', spec: scoring(seventeen), refused: /Too many/ },
  { about: 'an architecture twice', spec: scoring([arm, { ...arm, weight: 1 }]), refused: /Duplicate value/ },
  {
    about: 'an architecture twice in what is off',
    spec: scoring([arm, arm], false),
    refused: /Duplicate value/,
  },
  { about: 'weight 0', spec: scoring([{ ...arm, weight: 0 }]), refused: /greater than or equal to 1/ },
  { about: 'weight 101', spec: scoring([{ ...arm, weight: 101 }]), refused: /less than or equal to 100/ },
  { about: 'weight 1.5', spec: scoring([{ ...arm, weight: 1.5 }]), refused: /must be of type integer/ },
  { about: 'no weight', spec: scoring([{ architecture: 'arm64' }]), refused: /weight: Required value/ },
  { about: 'no architecture', spec: scoring([{ weight: 1 }]), refused: /architecture: Required value/ },
  {
    about: 'a platform that is no label value',
    spec: scoring([{ architecture: 'linux/arm64', weight: 1 }]),
    refused: /should match/,
  },
  { about: 'a fallback', spec: { fallbackArchitecture: 's390x' } },
  {
    about: 'a fallback that is no label value',
    spec: { fallbackArchitecture: 'arm 64' },
    refused: /should match/,
  },
  { about: 'a fallback that is too long', spec: { fallbackArchitecture: long }, refused: /Too long/ },
  ...[...architecturesOfNodes].map((name) => ({
    about: `a fallback: ${name}`,
    spec: { fallbackArchitecture: name },
  })),
  { about: 'a fallback that nobody knows yet', spec: { fallbackArchitecture: 'Ternary9' } },
  ...[...namesElsewhere.keys(), 'AMD64', 'Arm64', 'S390X', 'AArch64'].map((name) => ({
    about: `a fallback with the name that it has elsewhere: ${name}`,
    spec: { fallbackArchitecture: name },
    refused: notOfNodes,
  })),
  {
    about: 'a platform with the name that it has elsewhere',
    spec: scoring([{ architecture: 'aarch64', weight: 1 }]),
    refused: notOfNodes,
  },
];

const podCases: readonly ObjectCase[] = [
  { about: 'nothing set', object: podConfig({}) },
  {
    about: 'all set',
    object: podConfig({
      labelSelector: { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'tier', operator: 'Exists' }] },
      priority: 255,
      fallbackArchitecture: 'amd64',
      architectures: ['s390x', 'amd64'],
      onUnknownImage: 'fallback',
      onNoCommonArchitecture: 'pend',
      ...(scoring([arm]) as object),
    }),
  },
  {
    about: 'architectures: none',
    object: podConfig({ architectures: [] }),
    refused: /should have at least 1 items/,
  },
  {
    about: 'architectures: sixteen',
    object: podConfig({ architectures: seventeen.slice(1).map(({ architecture }) => architecture) }),
  },
  {
    about: 'architectures: seventeen',
    object: podConfig({ architectures: seventeen.map(({ architecture }) => architecture) }),
    refused: /must have at most 16 items/,
  },
  {
    about: 'architectures: one twice',
    object: podConfig({ architectures: ['amd64', 'arm64', 'amd64'] }),
    refused: /Duplicate value: "amd64"/,
  },
  {
    about: 'architectures: a text',
    object: podConfig({ architectures: 'amd64' }),
    refused: /must be of type array/,
  },
  {
    about: 'architectures: a number',
    object: podConfig({ architectures: [64] }),
    refused: /must be of type string/,
  },
  {
    about: 'architectures: one that is no label value',
    object: podConfig({ architectures: ['amd 64'] }),
    refused: /should match/,
  },
  {
    about: 'architectures: one with the name that it has elsewhere',
    object: podConfig({ architectures: ['amd64', 'aarch64'] }),
    refused: notOfNodes,
  },
  {
    about: 'architectures: one that is empty',
    object: podConfig({ architectures: [''] }),
    refused: /should be at least 1 chars long/,
  },
  { about: 'priority 0', object: podConfig({ priority: 0 }) },
  { about: 'priority -1', object: podConfig({ priority: -1 }), refused: /greater than or equal to 0/ },
  { about: 'priority 256', object: podConfig({ priority: 256 }), refused: /less than or equal to 255/ },
  { about: 'priority 1.5', object: podConfig({ priority: 1.5 }), refused: /must be of type integer/ },
  {
    about: 'a priority that is a text',
    object: podConfig({ priority: '1' }),
    refused: /must be of type integer/,
  },
  ...['gate', 'fallback', 'allow', 'deny'].map((onUnknownImage) => ({
    about: `unknown images: ${onUnknownImage}`,
    object: podConfig({ onUnknownImage }),
  })),
  {
    about: 'unknown images: something else',
    object: podConfig({ onUnknownImage: 'pend' }),
    refused: /Unsupported value: "pend"/,
  },
  ...['deny', 'pend', 'allow'].map((onNoCommonArchitecture) => ({
    about: `no common architecture: ${onNoCommonArchitecture}`,
    object: podConfig({ onNoCommonArchitecture }),
  })),
  {
    about: 'no common architecture: something else',
    object: podConfig({ onNoCommonArchitecture: 'gate' }),
    refused: /Unsupported value: "gate"/,
  },
  {
    about: 'no spec',
    object: { apiVersion, kind: 'PodPlacementConfig', metadata: { name: 'web', namespace: 'shop' } },
    refused: /spec: Required value/,
    isReadable: true,
  },
];

/** Every case, by kind. */
export const objectCases: readonly ObjectCase[] = [
  ...clusterCases,
  ...preferences.map(({ spec, ...rest }) => ({ ...rest, object: clusterConfig(spec) })),
  ...selectors.map(({ selector, ...rest }) => ({
    ...rest,
    object: clusterConfig({ namespaceSelector: selector }),
  })),
  ...podCases,
  ...preferences.map(({ spec, ...rest }) => ({ ...rest, object: podConfig(spec) })),
  ...selectors.map(({ selector, ...rest }) => ({ ...rest, object: podConfig({ labelSelector: selector }) })),
];
