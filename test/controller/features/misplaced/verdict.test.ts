/**
 * Whether the successor of a misplaced pod, or of a DaemonSet's pod, would get a node that can run it. Pods of
 * DaemonSets are not evicted; an event says what a person can do.
 */
import t from 'tap';
import {
  daemonVerdict,
  verdictOfSuccessor,
  type EvictionVerdict,
} from '../../../../src/controller/features/misplaced/verdict.ts';
import { trimNode } from '../../../../src/controller/state/cached.ts';
import type { Pod, PodSpec } from '../../../../src/kube/api/objects.ts';
import { keys } from '../../../../src/names/keys.ts';
import {
  archIn,
  defaultPolicy,
  facts,
  isIn,
  onArch,
  podOf,
  requiring,
  termOf,
  withLabels,
} from '../../../support/placement-input.ts';
import { controllerRef, nodeObject, type NodeOptions } from '../../objects.ts';
import { known, putPod, startWorld, type PodOptions, type World } from './setup.ts';
import { like } from '../../../support/like.ts';

interface Given {
  readonly images?: readonly string[];
  readonly spec?: Partial<PodSpec>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly record?: object;
  readonly policy?: Partial<typeof defaultPolicy>;
  /** Default: a ready one of amd64. */
  readonly nodes?: readonly ReturnType<typeof nodeObject>[];
}
type Table = Readonly<Record<string, readonly (readonly [about: string, given: Given])[]>>;

const context = { namespace: 'shop', namespaceLabels: {} };
const found = new Map(Object.entries({ ...known, 'arm:1': facts('arm64'), 'artifact:1': facts('') }));
const amd = ({ labels, ...options }: NodeOptions = {}) => [
  nodeObject('amd', 'amd64', { ...options, labels: { 'kubernetes.io/hostname': 'amd', ...labels } }),
];
const tainted = (key: string) => amd({ taints: [{ key, value: 'amd64', effect: 'NoSchedule' }] });
const pool = { pool: 'apps' };
const needsPool = { architectures: { amd64: withLabels(pool) } };
const matchesZone = { labels: { zone: 'a' }, policy: { matchNodeLabels: ['zone'] } };
const both = requiring(termOf(archIn('amd64', 'arm64')));
const ssd = { nodeSelector: { disk: 'ssd' } };
const gpuOr = (key: string) =>
  requiring(termOf({ key: 'gpu', operator: 'Exists' }), termOf({ key, operator: 'Exists' }));
const added = (...names: string[]) => ({ terms: [[['kubernetes.io/arch', names]]], made: true });
const widened = { nodeSelector: { 'kubernetes.io/arch': 'amd64' } };
const record = { v: 1, outcome: 'placed', imagesKey: 'x', widened, added: added('amd64', 'arm64') };
const disabled = { 'arch.example/placement': 'disabled' };

/** `moves`: a node that takes pods now can run it. */
const successors: Table = {
  moves: [
    ['plain', {}],
    ['widened to the architecture, under keep', { spec: both, record }],
    ['widened to the architecture, under widen', { spec: both, record, policy: { constraints: 'widen' } }],
    ['it allows both architectures itself', { spec: both }],
    ['it selects nodes, one of which can run it', { spec: ssd, nodes: amd({ labels: { disk: 'ssd' } }) }],
    ["a node with its architecture's labels", { policy: needsPool, nodes: amd({ labels: pool }) }],
    [
      'a node with a matched label, and one of its terms',
      { ...matchesZone, spec: gpuOr('disk'), nodes: amd({ labels: { zone: 'a', disk: 'ssd' } }) },
    ],
    [
      'a taint that the policy tolerates',
      { policy: { tolerations: [{ key: 'gpu', operator: 'Equal' }] }, nodes: tainted('gpu') },
    ],
  ],
  skipped: [
    ['opted out', { labels: disabled }],
    ['it selects the architecture', { spec: onArch('arm64') }],
    ['it requires the architecture', { spec: requiring(termOf(archIn('arm64'))) }],
  ],
  later: [
    ['its images constrain nothing now', { images: ['artifact:1'] }],
    ['its images have the architecture now', { images: ['both:1'] }],
  ],
  'no-architecture': [['its images share none', { images: ['app:1', 'arm:1'] }]],
  'no-node': [
    [
      'only a node of another architecture',
      { policy: needsPool, nodes: [nodeObject('arm', 'arm64', { labels: pool })] },
    ],
    ['it selects nodes, none of which can run it', { spec: ssd }],
    ['it requires labels that none has', { spec: gpuOr('disk') }],
    ["no node with its architecture's labels", { policy: needsPool }],
    ['no node with a matched label', matchesZone],
    ['another operating system', { nodes: amd({ os: 'windows' }) }],
    ['a cordoned node', { nodes: tainted('node.kubernetes.io/unschedulable') }],
    ['a taint that it does not tolerate', { nodes: tainted('gpu') }],
    [
      'a node that is not ready',
      { nodes: amd().map((node) => ({ ...node, status: { ...node.status, conditions: [] } })) },
    ],
  ],
};

const choosing = (...values: string[]) => ({ spec: requiring(termOf(archIn(...values))) });

const templates: Table = {
  unplaced: [
    ['applied before archwright was installed', {}],
    ['it chooses several architectures', choosing('amd64', 'arm64')],
  ],
  'no-architecture': [['its images share none', { images: ['app:1', 'arm:1'] }]],
  later: [
    [
      'placed since: its pod is about to be deleted',
      {
        ...choosing('amd64'),
        record: { v: 1, architectures: ['amd64'], imagesKey: 'x', added: added('amd64') },
      },
    ],
    ['it chooses its architecture', choosing('arm64')],
    ['opted out', { labels: disabled }],
    ['in an excluded namespace', { policy: { excludedNamespaces: ['shop'] } }],
    ['an unknown image', { images: ['app:1', 'other:1'] }],
    ['without the image that cannot run there', { images: ['both:1'] }],
  ],
};

function check(
  what: string,
  table: Table,
  verdictOf: (pod: Pod, given: Given) => EvictionVerdict | undefined,
): void {
  for (const [wanted, rows] of Object.entries(table))
    for (const [about, given] of rows)
      t.test(`${what}, ${about}: ${wanted}`, (t) => {
        const { images = ['app:1'], spec, labels = {} } = given;
        const annotations = given.record ? { [keys.decision]: JSON.stringify(given.record) } : {};
        const verdict = verdictOf(podOf(images, spec, { labels, annotations }), given);
        t.equal(verdict?.kind === 'report' ? verdict.report : (verdict?.kind ?? 'moves'), wanted);
        t.end();
      });
}

const contextOf = ({ policy }: Given) => ({
  ...context,
  policy: { ...defaultPolicy, ...policy },
  facts: found,
});

check("a pod's successor", successors, (pod, given) => {
  const nodes = (given.nodes ?? amd()).map((node) => trimNode(node, (value) => value));
  const onArm = { ...pod, spec: { ...pod.spec, nodeName: 'arm-1' } };
  return verdictOfSuccessor(onArm, contextOf(given), 'arm64', nodes);
});
check("a DaemonSet's template", templates, (pod, given) =>
  daemonVerdict(pod, contextOf(given), 'arm64', 'unplaced'),
);

const owner = controllerRef('DaemonSet', 'probe', { uid: 'daemon-uid' });
const path = '/apis/apps/v1/namespaces/shop/daemonsets/probe';
const onItsNode = requiring({ matchFields: [isIn('metadata.name', 'arm-1')] });

function putDaemonSet({ store }: World, uid = owner.uid): void {
  const template = { spec: { containers: [{ name: 'app', image: 'app:1' }] } };
  store.put(path, { metadata: { uid }, spec: { template } });
}

for (const misplacedPods of ['evict', 'event'] as const)
  t.test(`a DaemonSet gets one event for all of its pods, under ${misplacedPods}`, async (t) => {
    const world = await startWorld(t, { configuration: { misplacedPods } });
    putDaemonSet(world);
    for (const name of ['probe-a', 'probe-b']) putPod(world.store, name, { owner, spec: onItsNode });
    await world.afterGrace();
    await world.after(20 * 60_000);
    t.strictSame(world.store.writes(), []);
    const { controller: _, ...about } = { ...owner, namespace: 'shop' };
    const message =
      /app:1 has amd64\. Its DaemonSet would create .*: kubectl -n shop rollout restart daemonset probe$/;
    like(t, world.events, [
      { type: 'Warning', reason: 'MisplacedPod', about: { kind: 'Pod', name: /^probe-[ab]$/ }, message },
      { about },
    ]);
    t.equal(await world.series('archwright_misplaced_pods'), 2);
    t.equal(await world.series('archwright_misplaced_pods_total{outcome="unplaced"}'), 1);
    t.equal(await world.series('archwright_misplaced_pods_total{outcome="evicted"}'), 0);
  });

const unread: Readonly<Record<string, (world: World) => void>> = {
  'was created again meanwhile': (world) => putDaemonSet(world, 'another'),
  'is gone': () => undefined,
  'may not be read': (world) => {
    putDaemonSet(world);
    world.store.fault(`GET ${path}`, { status: 403 });
  },
};
for (const [what, before] of Object.entries(unread))
  t.test(`a DaemonSet that ${what}: no event`, async (t) => {
    const world = await startWorld(t);
    before(world);
    putPod(world.store, 'probe-a', { owner, spec: onItsNode });
    await world.afterGrace();
    t.strictSame(world.store.writes(), []);
    t.strictSame(world.events, []);
  });

const kruise = { ...owner, apiVersion: 'apps.kruise.example/v1' };
const pinned: readonly (readonly [by: string, pod: PodOptions, isReported: boolean])[] = [
  ['a DaemonSet of another API group', { owner: kruise }, true],
  ['a controller that pins nodes', { owner: { ...kruise, kind: 'BroadcastJob' } }, true],
  ['a controller, with placement disabled', { owner: kruise, labels: disabled }, false],
  [
    'a controller with an architecture in its template',
    { owner: kruise, spec: { ...onItsNode, ...onArch('arm64') } },
    false,
  ],
  ['nobody', { owner: null }, false],
];

for (const [by, pod, isReported] of pinned)
  t.test(`a pinned pod of ${by}: ${isReported ? 'an event' : 'no event'}`, async (t) => {
    const world = await startWorld(t);
    putPod(world.store, 'probe-a', { spec: onItsNode, ...pod });
    await world.afterGrace();
    t.strictSame(world.store.writes(), []);
    t.equal(await world.series('archwright_misplaced_pods_total{outcome="pinned"}'), isReported ? 1 : 0);
    const message = /app:1 has amd64\. .* chose this node.*kubernetes\.io\/arch In \[amd64\]/;
    const events = [
      { reason: 'MisplacedPod', about: { kind: 'Pod', name: 'probe-a' }, message },
      { about: { name: 'probe', namespace: 'shop' }, message },
    ];
    like(t, world.events, isReported ? events : []);
  });
