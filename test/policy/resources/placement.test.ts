import { readFile } from 'node:fs/promises';
import t from 'tap';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../../src/kube/api/objects.ts';
import {
  byPrecedence,
  readClusterConfig,
  readPodConfig,
  type PodPlacement,
} from '../../../src/policy/resources/placement.ts';
import { selects, type Selector } from '../../../src/policy/resources/schemas.ts';
import { clusterConfig, objectCases, podConfig } from './objects.ts';

t.test('objects are read exactly if the API server accepts them', async (t) => {
  t.ok(objectCases.length > 80);
  for (const { about, object, refused, isReadable } of objectCases) {
    const read = object.kind === 'PodPlacementConfig' ? readPodConfig : readClusterConfig;
    const { value, problems } = read(object);
    const name = `${object.kind}: ${about}`;
    if (refused && !isReadable) {
      t.equal(value, undefined, name);
      t.not(problems.length, 0, name);
      for (const problem of problems)
        t.match(problem, /^(?:spec|metadata)[. ]/, `${name} names the position`);
    } else t.strictSame(problems, [], name);
  }
});

t.test('the example is valid', async (t) => {
  const file = new URL('../../../examples/custom-resources.yaml', import.meta.url);
  const [cluster, pods] = parseAllDocuments(await readFile(file, 'utf8')).map(
    (each) => each.toJS() as KubeObject,
  );
  t.strictSame(readClusterConfig(cluster ?? {}).problems, []);
  t.strictSame(readPodConfig(pods ?? {}).problems, []);
});

t.test('a ClusterPodPlacementConfig is read completely', async (t) => {
  t.strictSame(readClusterConfig(clusterConfig({})).value, {
    logVerbosity: undefined,
    namespaceSelector: undefined,
    fallbackArchitecture: undefined,
    weights: undefined,
    execFormatErrorMonitor: undefined,
    constraints: undefined,
  });
  const object = clusterConfig({
    logVerbosity: 'Trace',
    namespaceSelector: { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'c', operator: 'Exists' }] },
    fallbackArchitecture: 's390x',
    preferredArchitecture: 'arm64',
    constraints: 'widen',
    plugins: { execFormatErrorMonitor: { enabled: true } },
  });
  t.strictSame(readClusterConfig(object).value, {
    logVerbosity: 'Trace',
    namespaceSelector: [
      { key: 'a', operator: 'In', values: ['b'] },
      { key: 'c', operator: 'Exists', values: [] },
    ],
    fallbackArchitecture: 's390x',
    weights: { arm64: 100 },
    execFormatErrorMonitor: true,
    constraints: 'widen',
  });
});

t.test('a PodPlacementConfig is read completely', async (t) => {
  t.strictSame(readPodConfig(podConfig({})).value, {
    namespace: 'shop',
    name: 'web',
    createdAt: 0,
    priority: 0,
    selector: [],
    fallbackArchitecture: undefined,
    weights: undefined,
    onUnknownImage: undefined,
    onNoCommonArchitecture: undefined,
    constraints: undefined,
  });
  const object = podConfig({
    labelSelector: { matchExpressions: [{ key: 'tier', operator: 'In', values: ['a', 'b'] }] },
    priority: 7,
    fallbackArchitecture: 'amd64',
    architectures: ['s390x', 'amd64'],
    onUnknownImage: 'deny',
    onNoCommonArchitecture: 'allow',
    constraints: 'keep',
    plugins: {
      nodeAffinityScoring: {
        enabled: true,
        platforms: [
          { architecture: 'arm64', weight: 80 },
          { architecture: 'amd64', weight: 20 },
        ],
      },
    },
  });
  const metadata = { name: 'x', namespace: 'y', creationTimestamp: '1970-01-01T00:00:02Z' };
  t.strictSame(readPodConfig({ ...object, metadata }).value, {
    namespace: 'y',
    name: 'x',
    createdAt: 2000,
    priority: 7,
    selector: [{ key: 'tier', operator: 'In', values: ['a', 'b'] }],
    fallbackArchitecture: 'amd64',
    architectures: ['amd64', 's390x'],
    weights: { arm64: 80, amd64: 20 },
    onUnknownImage: 'deny',
    onNoCommonArchitecture: 'allow',
    constraints: 'keep',
  });
});

t.test('weights are ignored while scoring is off', async (t) => {
  const platforms = [{ architecture: 'arm64', weight: 80 }];
  const spec = { plugins: { nodeAffinityScoring: { enabled: false, platforms } } };
  t.equal(readPodConfig(podConfig(spec)).value?.weights, undefined);
  t.equal(readClusterConfig(clusterConfig(spec)).value?.weights, undefined);
});

t.test('null means absent, and unknown fields are ignored', async (t) => {
  const spec = {
    labelSelector: null,
    priority: null,
    architectures: null,
    plugins: null,
    onUnknownImage: null,
    newer: [1],
  };
  t.strictSame(readPodConfig(podConfig(spec)).problems, []);
  t.strictSame(readPodConfig(podConfig(null)).problems, []);
  t.strictSame(readPodConfig({ ...podConfig({}), metadata: null } as object).problems, []);
  const cluster = {
    namespaceSelector: null,
    logVerbosity: null,
    preferredArchitecture: null,
    plugins: { x: 1 },
  };
  t.strictSame(readClusterConfig(clusterConfig(cluster)).problems, []);
});

t.test('the first problem is reported', async (t) => {
  const of = (spec: unknown) => readPodConfig(podConfig(spec)).problems;
  t.strictSame(of({ priority: -1, labelSelector: 1 }), [
    'spec.priority must be a whole number from 0 to 255',
  ]);
  t.strictSame(of(1), ['spec must be an object']);
});

t.test('objects are ordered by priority, then age, then name', async (t) => {
  const placement = (name: string, priority: number, createdAt: number) =>
    ({ ...readPodConfig(podConfig({ priority }, name)).value, createdAt }) as PodPlacement;
  const sorted = [
    placement('high', 9, 3),
    placement('old', 5, 1),
    placement('a', 5, 2),
    placement('b', 5, 2),
    placement('low', 0, 0),
  ];
  for (let turn = 0; turn < sorted.length; turn++) {
    const mixed = [...sorted.slice(turn), ...sorted.slice(0, turn)].reverse();
    t.strictSame(
      mixed.sort(byPrecedence).map(({ name }) => name),
      ['high', 'old', 'a', 'b', 'low'],
    );
  }
});

t.test('selectors match labels as in Kubernetes', async (t) => {
  const web = { app: 'web', tier: 'front', empty: '' };
  const exists = (key: string) => ({ matchExpressions: [{ key, operator: 'Exists' }] });
  const cases: [about: string, selector: object, labels: Record<string, string> | null, selected: boolean][] =
    [
      ['empty selects all', {}, web, true],
      ['empty selects objects without labels', {}, null, true],
      ['a label', { matchLabels: { app: 'web' } }, web, true],
      ['another value', { matchLabels: { app: 'api' } }, web, false],
      ['no labels', { matchLabels: { app: 'web' } }, null, false],
      ['an empty value', { matchLabels: { empty: '' } }, web, true],
      ['an empty value is not an absent one', { matchLabels: { zone: '' } }, web, false],
      ['all labels must match', { matchLabels: { app: 'web', tier: 'back' } }, web, false],
      ['an expression', exists('app'), web, true],
      ['a label and an expression', { matchLabels: { app: 'web' }, ...exists('zone') }, web, false],
      ['an inherited property is no label', exists('constructor'), web, false],
    ];
  for (const [about, labelSelector, labels, selected] of cases) {
    const selector = readPodConfig(podConfig({ labelSelector })).value?.selector as Selector;
    t.equal(selects(selector, labels), selected, about);
  }
});

t.test('the first problem of a selector is reported with its position', async (t) => {
  const expressing = (expression: unknown): unknown => ({ matchExpressions: [expression] });
  for (const [labelSelector, problem] of [
    [{ matchLabels: { '-': 'x' } }, 'matchLabels.0.key must be a label key'],
    [{ matchLabels: { a: 1 } }, 'matchLabels.0.values.0 must be a label value'],
    [{ matchLabels: [] }, 'matchLabels must be an object'],
    [expressing({ operator: 'In' }), 'matchExpressions.0.key is missing'],
    [
      expressing({ key: 'a', operator: 'In' }),
      'matchExpressions.0 must have values for In and NotIn, and none for other operators',
    ],
  ] as const)
    t.strictSame(readPodConfig(podConfig({ labelSelector })).problems, [`spec.labelSelector.${problem}`]);
});
