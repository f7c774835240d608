/**
 * Valid and invalid custom resources. The reader and a real API server (`test/e2e/chart/versions.test.ts`)
 * must agree.
 */
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import { architecturesOfNodes, namesElsewhere } from '../../../src/names/architecture.ts';

export interface ObjectCase {
  readonly about: string;
  readonly object: KubeObject & { readonly spec?: unknown };
  /** The API server's error. Absent: it accepts the object. */
  readonly refused?: RegExp;
  /** The reader accepts it although the server refuses it. */
  readonly isReadable?: true;
}

const apiVersion = 'arch.example/v1alpha1';

export function clusterConfig(spec: unknown, name = 'cluster'): KubeObject & { readonly spec?: unknown } {
  return { apiVersion, kind: 'ClusterPodPlacementConfig', metadata: { name }, spec };
}

export function podConfig(spec: unknown, name = 'web', namespace = 'shop'): KubeObject & { spec?: unknown } {
  return { apiVersion, kind: 'PodPlacementConfig', metadata: { name, namespace }, spec };
}

export function rollout(spec: unknown, name = 'web', namespace = 'shop'): KubeObject & { spec?: unknown } {
  return { apiVersion, kind: 'ArchitectureRollout', metadata: { name, namespace }, spec };
}

const scoring = (platforms: unknown, enabled: unknown = true): object => ({
  plugins: { nodeAffinityScoring: { enabled, platforms } },
});

const arm = { architecture: 'arm64', weight: 80 };
const seventeen = Array.from({ length: 17 }, (_, index) => ({ architecture: `a${index}`, weight: 1 }));
const long = 'a'.repeat(64);
const notOfNodes = /no node has this architecture; use lower case/;

type Row = readonly [about: string, spec: unknown, refused?: RegExp, isReadable?: true];

const clusterRows: readonly Row[] = [
  ['nothing set', {}],
  [
    'all set',
    {
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
    },
  ],
  ['a preferred architecture', { preferredArchitecture: 'arm64' }],
  ['a preferred architecture with scoring off', { preferredArchitecture: 'arm64', ...scoring([arm], false) }],
  ['a preferred architecture and scoring', { preferredArchitecture: 'arm64', ...scoring([arm]) }, /not both/],
  ['no spec', undefined, /spec: Required value/, true],
  ...['Normal', 'Debug', 'Trace', 'TraceAll'].map((level): Row => [
    `verbosity ${level}`,
    { logVerbosity: level },
  ]),
  ['constraints', { constraints: 'widen' }],
  ['constraints: something else', { constraints: 'soft' }, /Unsupported value: "soft"/],
  ['an unknown verbosity', { logVerbosity: 'debug' }, /Unsupported value: "debug"/],
  ['a monitor without enabled', { plugins: { execFormatErrorMonitor: {} } }, /enabled: Required value/, true],
  [
    'a monitor that is a text',
    { plugins: { execFormatErrorMonitor: { enabled: 'yes' } } },
    /must be of type boolean/,
  ],
  ['plugins as a list', { plugins: [] }, /must be of type object/],
  ['a preferred architecture with a name of other programs', { preferredArchitecture: 'x86_64' }, notOfNodes],
  ['an empty preferred architecture', { preferredArchitecture: '' }, /preferredArchitecture/],
  ['a number as architecture', { fallbackArchitecture: 64 }, /must be of type string/],
  ['an empty selector', { namespaceSelector: {} }],
];

const expressing = (expression: unknown): unknown => ({ matchExpressions: [expression] });
const labeled = (key: string, value: unknown = 'x'): unknown => ({ matchLabels: { [key]: value } });
const app = (operator: string, ...lists: unknown[][]): unknown =>
  expressing({ key: 'app', operator, ...(lists[0] && { values: lists[0] }) });

const selectors = (
  [
    ['a text', 'app=web', /must be of type object/],
    ['labels as a list', { matchLabels: [] }, /must be of type object/],
    ['expressions as an object', { matchExpressions: {} }, /must be of type array/],
    ['a value that is not a label value', labeled('app', 'not a value'), /should match/],
    ['a value that is too long', labeled('app', long), /Too long/],
    ['a value that is a number', labeled('app', 1), /must be of type string/],
    ['a key that is not a label key', labeled('not a key'), /must be a label key/],
    ['a key with two slashes', labeled('a/b/c'), /must be a label key/],
    ['a key whose name is too long', labeled(`example.com/${long}`), /must be a label key/],
    ['an expression without a key', expressing({ operator: 'Exists' }), /key: Required value/],
    [
      'an expression whose key is not a label key',
      expressing({ key: '-x', operator: 'Exists' }),
      /should match/,
    ],
    ['an expression without an operator', expressing({ key: 'app' }), /operator: Required value/],
    ['an operator of node selectors', app('Gt', ['1']), /Unsupported value: "Gt"/],
    ['In without values', app('In'), /In and NotIn require values/],
    ['NotIn with an empty list', app('NotIn', []), /In and NotIn require values/],
    ['Exists with values', app('Exists', ['web']), /must have none/],
    ['a value in an expression that is not a label value', app('In', ['web', 'a b']), /should match/],
    ['an expression that is a text', expressing('app'), /must be of type object/],
  ] as const
).map(([about, spec, refused]): Row => [`selector: ${about}`, spec, refused]);

const preferences: readonly Row[] = [
  ['scoring', scoring([arm])],
  [
    'scoring with weights 1 and 100',
    scoring([
      { ...arm, weight: 1 },
      { architecture: 'b', weight: 100 },
    ]),
  ],
  ['scoring off, without platforms', { plugins: { nodeAffinityScoring: { enabled: false } } }],
  [
    'scoring without enabled',
    { plugins: { nodeAffinityScoring: { platforms: [arm] } } },
    /enabled: Required value/,
    true,
  ],
  ['scoring without platforms', scoring(undefined), /platforms must not be empty/],
  ['scoring with no platform', scoring([]), /platforms must not be empty/],
  ['platforms that are no list', scoring(arm), /must be of type array/],
  ['a platform that is a text', scoring(['arm64']), /must be of type object/],
  ['seventeen platforms', scoring(seventeen), /Too many/],
  ['an architecture twice', scoring([arm, { ...arm, weight: 1 }]), /Duplicate value/],
  ['an architecture twice, scoring off', scoring([arm, arm], false), /Duplicate value/],
  ['weight 0', scoring([{ ...arm, weight: 0 }]), /greater than or equal to 1/],
  ['weight 101', scoring([{ ...arm, weight: 101 }]), /less than or equal to 100/],
  ['weight 1.5', scoring([{ ...arm, weight: 1.5 }]), /must be of type integer/],
  ['no weight', scoring([{ architecture: 'arm64' }]), /weight: Required value/],
  ['no architecture', scoring([{ weight: 1 }]), /architecture: Required value/],
  [
    'a platform that is not a label value',
    scoring([{ architecture: 'linux/arm64', weight: 1 }]),
    /should match/,
  ],
  ['a fallback', { fallbackArchitecture: 's390x' }],
  ['a fallback that is not a label value', { fallbackArchitecture: 'arm 64' }, /should match/],
  ['a fallback that is too long', { fallbackArchitecture: long }, /Too long/],
  ...[...architecturesOfNodes].map((name): Row => [`a fallback: ${name}`, { fallbackArchitecture: name }]),
  ['an unknown fallback', { fallbackArchitecture: 'Ternary9' }],
  ...[...namesElsewhere.keys(), 'AMD64', 'Arm64', 'S390X', 'AArch64'].map((name): Row => [
    `a fallback with a name of other programs: ${name}`,
    { fallbackArchitecture: name },
    notOfNodes,
  ]),
  ['a platform with a name of other programs', scoring([{ architecture: 'aarch64', weight: 1 }]), notOfNodes],
];

const podRows: readonly Row[] = [
  ['nothing set', {}],
  [
    'all set',
    {
      labelSelector: { matchLabels: { app: 'web' }, matchExpressions: [{ key: 'tier', operator: 'Exists' }] },
      priority: 255,
      fallbackArchitecture: 'amd64',
      architectures: ['s390x', 'amd64'],
      onUnknownImage: 'fallback',
      onNoCommonArchitecture: 'pend',
      ...scoring([arm]),
    },
  ],
  ['architectures: none', { architectures: [] }, /should have at least 1 items/],
  ['architectures: sixteen', { architectures: seventeen.slice(1).map(({ architecture }) => architecture) }],
  [
    'architectures: seventeen',
    { architectures: seventeen.map(({ architecture }) => architecture) },
    /must have at most 16 items/,
  ],
  ['architectures: one twice', { architectures: ['amd64', 'arm64', 'amd64'] }, /Duplicate value: "amd64"/],
  ['architectures: a text', { architectures: 'amd64' }, /must be of type array/],
  ['architectures: a number', { architectures: [64] }, /must be of type string/],
  ['architectures: one that is not a label value', { architectures: ['amd 64'] }, /should match/],
  ['architectures: one with a name of other programs', { architectures: ['amd64', 'aarch64'] }, notOfNodes],
  ['architectures: one that is empty', { architectures: [''] }, /should be at least 1 chars long/],
  ['priority 0', { priority: 0 }],
  ['priority -1', { priority: -1 }, /greater than or equal to 0/],
  ['priority 256', { priority: 256 }, /less than or equal to 255/],
  ['priority 1.5', { priority: 1.5 }, /must be of type integer/],
  ['a priority that is a text', { priority: '1' }, /must be of type integer/],
  ...['gate', 'fallback', 'allow', 'deny'].map((onUnknownImage): Row => [
    `unknown images: ${onUnknownImage}`,
    { onUnknownImage },
  ]),
  ['unknown images: something else', { onUnknownImage: 'pend' }, /Unsupported value: "pend"/],
  ...['deny', 'pend', 'allow'].map((onNoCommonArchitecture): Row => [
    `no common architecture: ${onNoCommonArchitecture}`,
    { onNoCommonArchitecture },
  ]),
  ...['keep', 'widen'].map((constraints): Row => [`constraints: ${constraints}`, { constraints }]),
  ['constraints: something else', { constraints: 'allow' }, /Unsupported value: "allow"/],
  ['no common architecture: something else', { onNoCommonArchitecture: 'gate' }, /Unsupported value: "gate"/],
  ['no spec', undefined, /spec: Required value/, true],
];

const cases = (rows: readonly Row[], make: (spec: unknown) => ObjectCase['object']): readonly ObjectCase[] =>
  rows.map(([about, spec, refused, isReadable]) => ({
    about,
    object: make(spec),
    ...(refused && { refused }),
    ...(isReadable && { isReadable }),
  }));

export const objectCases: readonly ObjectCase[] = [
  { about: 'another name', object: clusterConfig({}, 'default'), refused: /its name is cluster/ },
  ...cases([...clusterRows, ...preferences], (spec) => clusterConfig(spec)),
  ...cases(selectors, (namespaceSelector) => clusterConfig({ namespaceSelector })),
  ...cases([...podRows, ...preferences], (spec) => podConfig(spec)),
  ...cases(selectors, (labelSelector) => podConfig({ labelSelector })),
];

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `web-${index}`);

const invalidRollouts: Readonly<Record<string, readonly [spec: object, refused: RegExp]>> = {
  'an architecture of no node': [{ architecture: 'aarch64' }, notOfNodes],
  'no step': [{ steps: [] }, /spec\.steps/],
  'a step of 0%': [{ steps: ['0%'] }, /spec\.steps\[0\]/],
  'a step of no pods': [{ steps: [0] }, /spec\.steps\[0\]/],
  'a step of 101%': [{ steps: ['101%'] }, /spec\.steps\[0\]/],
  'a step without a unit': [{ steps: ['10'] }, /spec\.steps\[0\]/],
  'a pause without a unit': [{ pause: '10' }, /spec\.pause/],
  'no names': [{ names: [] }, /spec\.names/],
  'too many names': [{ names: names(65) }, /spec\.names/],
  'no restarts': [{ unhealthy: { restarts: 0 } }, /spec\.unhealthy\.restarts/],
  'a tolerance of pods': [{ tolerance: '3' }, /spec\.tolerance/],
  'a wrong time': [{ resumedAt: 'now' }, /spec\.resumedAt/],
  'an operator that does not exist': [{ selector: expressing({ key: 'a', operator: 'Is' }) }, /operator/],
};

const rolloutRows: readonly Row[] = [
  ['only an architecture', { architecture: 'arm64' }],
  [
    'all set',
    {
      architecture: 'arm64',
      selector: { matchLabels: { app: 'web' } },
      names: ['web', 'db'],
      steps: [1, '10%', '100%'],
      pause: '1h30m',
      unhealthy: { restarts: 5, readyWithin: '90s', timesSlower: 2 },
      tolerance: '0%',
      retryAfter: '1d',
      rebalance: true,
      paused: true,
      aborted: false,
      resumedAt: '2026-11-01T00:00:00Z',
    },
  ],
  ['as many names as possible', { architecture: 'arm64', names: names(64) }],
  ['no architecture', {}, /spec\.architecture: Required value/],
  ...Object.entries(invalidRollouts).map(([about, [spec, refused]]): Row => [
    about,
    { architecture: 'arm64', ...spec },
    refused,
  ]),
];

export const rolloutCases: readonly ObjectCase[] = cases(rolloutRows, (spec) => rollout(spec));
