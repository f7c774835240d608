/** Patches of a node's taints, and the resulting node. */
import jsonPatch from 'fast-json-patch';
import t from 'tap';
import { ownTaints, taintFor, taintPatch } from '../../../../src/controller/features/taints/own-taint.ts';
import type { Node, Taint } from '../../../../src/kube/api/objects.ts';

const key = 'arch.example/architecture';
const arm = taintFor(key, 'arm64');
const foreign: Taint = { key: 'dedicated', value: 'gpu', effect: 'NoSchedule' };

function nodeWith(taints: readonly Taint[] | undefined, record?: string, annotations = true): Node {
  return {
    metadata: {
      name: 'n',
      resourceVersion: '7',
      ...(annotations && { annotations: record === undefined ? {} : { 'arch.example/taint': record } }),
    },
    spec: taints === undefined ? {} : { taints },
    status: { nodeInfo: { architecture: 'arm64' } },
  };
}

function applied(node: Node, wanted: Taint | undefined, keys: readonly string[]): Node | undefined {
  const patch = taintPatch(node, wanted, keys);
  if (patch === undefined) return undefined;
  t.equal(patch.type, 'json');
  const operations = patch.body as jsonPatch.Operation[];
  t.strictSame(operations[0], { op: 'replace', path: '/metadata/resourceVersion', value: '7' }, 'guarded');
  return jsonPatch.applyPatch(structuredClone(node), operations, true).newDocument;
}

const otherEffect: Taint = { ...arm, effect: 'NoExecute' };
const old: Taint = { key: 'old', value: 'arm64', effect: 'NoSchedule' };
const common: Taint = { key: 'kubernetes.io/arch', value: 'arm64', effect: 'NoSchedule' };

/** The node after the patch. */
interface Result {
  readonly taints: readonly Taint[];
  readonly record?: string;
}
const recorded = (...taints: Taint[]): Result => ({ taints, record: key });
const unrecorded = (...taints: Taint[]): Result => ({ taints });

/** Without a result: no patch. */
type Case = readonly [name: string, node: Node, result?: Result | undefined, keys?: readonly string[]];

const wantedCases: readonly Case[] = [
  ['added to a node without taints and annotations', nodeWith(undefined, undefined, false), recorded(arm)],
  ["added beside others' taints", nodeWith([foreign]), recorded(foreign, arm)],
  ['present already, ours', nodeWith([arm], key)],
  ['present already, not ours', nodeWith([arm])],
  ['wrong value', nodeWith([{ ...arm, value: 'amd64' }, foreign]), recorded(foreign, arm)],
  ['wrong effect', nodeWith([foreign, otherEffect]), recorded(foreign, arm)],
  [
    'correct and wrong taints of the key: the correct one stays',
    nodeWith([otherEffect, arm, { ...arm, effect: 'PreferNoSchedule' }]),
    unrecorded(arm),
  ],
  [
    'only wrong taints of the key',
    nodeWith([
      { key, effect: 'NoSchedule' },
      { key, value: 'x', effect: 'NoExecute' },
    ]),
    recorded(arm),
  ],
  ['removed by a person while it is wanted', nodeWith([foreign], key), recorded(foreign, arm)],
  [
    'another key than before: the same patch removes the old taint',
    nodeWith([old, foreign], 'old'),
    recorded(foreign, arm),
    [key, 'old'],
  ],
  [
    'another key, with a taint that another writer added: it is not ours',
    nodeWith([old, arm], 'old'),
    unrecorded(arm),
    [key, 'old'],
  ],
];
const unwantedCases: readonly Case[] = [
  ['not wanted, nothing of ours', nodeWith([foreign])],
  ['not wanted, recorded', nodeWith([arm, foreign], key), unrecorded(foreign)],
  [
    'not wanted, recorded with a foreign key; another effect is not ours',
    nodeWith([{ ...old, effect: 'NoExecute' }, old], 'old'),
    unrecorded({ ...old, effect: 'NoExecute' }),
    [key, 'old'],
  ],
  [
    "attack: the node's annotation names a taint of another program",
    nodeWith([old, foreign, arm], 'dedicated'),
    unrecorded(old, foreign),
  ],
  [
    "attack: it names a key of ours, with another program's value",
    nodeWith([{ ...arm, value: 'quarantine' }], key),
    unrecorded({ ...arm, value: 'quarantine' }),
  ],
  ['not wanted, our prefix and the architecture', nodeWith([arm]), unrecorded()],
  ['not wanted, our prefix, another value', nodeWith([{ ...arm, value: 'blue' }])],
  ['not wanted, our prefix, another effect', nodeWith([otherEffect])],
  ['not wanted, our prefix, no key of the settings', nodeWith([arm]), undefined, []],
  [
    'not wanted, a key of the settings without our prefix, not recorded',
    nodeWith([common]),
    undefined,
    [common.key],
  ],
  ['a record without its taint is removed', nodeWith([foreign], key), unrecorded(foreign)],
];

for (const [wanted, cases] of [
  [arm, wantedCases],
  [undefined, unwantedCases],
] as const) {
  for (const [name, node, result, keys = [key]] of cases) {
    t.test(name, async (t) => {
      const after = applied(node, wanted, keys);
      if (result === undefined) {
        t.equal(after, undefined);
        return;
      }
      t.strictSame(after?.spec?.taints ?? [], result.taints);
      t.equal(after?.metadata?.annotations?.['arch.example/taint'], result.record);
      if (after) t.equal(applied(after, wanted, keys), undefined, 'a second run changes nothing');
    });
  }
}

t.test('other annotations of the node stay', async (t) => {
  const node: Node = {
    metadata: { resourceVersion: '7', annotations: { a: 'b' } },
    spec: {},
    status: { nodeInfo: { architecture: 'arm64' } },
  };
  const put = applied(node, arm, [key]);
  t.strictSame(put?.metadata?.annotations, { a: 'b', 'arch.example/taint': key });
  t.strictSame(put && applied(put, undefined, [key])?.metadata?.annotations, { a: 'b' });
});

t.test('on a node of unknown architecture, only a recorded taint is ours', async (t) => {
  const taints = [arm, { ...arm, key: 'k' }];
  t.strictSame(ownTaints({ ownTaintKey: undefined, architecture: undefined, taints }, [key, 'k']), []);
  t.strictSame(ownTaints({ ownTaintKey: 'k', architecture: undefined, taints }, [key, 'k']), [taints[1]]);
});
