/** What is done to a node's taints, as operations and as the node that comes of them. */
import jsonPatch from 'fast-json-patch';
import t from 'tap';
import { ownTaints, hasRightTaint, taintFor, taintPatch } from '../../../src/controller/taints/own-taint.ts';
import type { Node, Taint } from '../../../src/kube/api/objects.ts';

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
  t.same(operations[0], { op: 'replace', path: '/metadata/resourceVersion', value: '7' }, 'guarded');
  return jsonPatch.applyPatch(structuredClone(node), operations, true).newDocument;
}

interface Case {
  readonly name: string;
  readonly node: Node;
  readonly wanted?: Taint;
  readonly keys?: readonly string[];
  /** `undefined`: no patch. */
  readonly result?: { readonly taints: readonly Taint[]; readonly record?: string };
}

const cases: readonly Case[] = [
  {
    name: 'put on a node without taints and annotations',
    node: nodeWith(undefined, undefined, false),
    wanted: arm,
    result: { taints: [arm], record: key },
  },
  {
    name: 'put beside the taints of others',
    node: nodeWith([foreign]),
    wanted: arm,
    result: { taints: [foreign, arm], record: key },
  },
  { name: 'there already, of ours', node: nodeWith([arm], key), wanted: arm },
  { name: 'there already, of somebody else', node: nodeWith([arm]), wanted: arm },
  {
    name: 'wrong value',
    node: nodeWith([{ ...arm, value: 'amd64' }, foreign]),
    wanted: arm,
    result: { taints: [foreign, arm], record: key },
  },
  {
    name: 'wrong effect',
    node: nodeWith([foreign, { ...arm, effect: 'NoExecute' }]),
    wanted: arm,
    result: { taints: [foreign, arm], record: key },
  },
  {
    name: 'right and wrong ones of the key: the right one stays',
    node: nodeWith([{ ...arm, effect: 'NoExecute' }, arm, { ...arm, effect: 'PreferNoSchedule' }]),
    wanted: arm,
    result: { taints: [arm] },
  },
  {
    name: 'all of the key wrong, none else',
    node: nodeWith([
      { key, effect: 'NoSchedule' },
      { key, value: 'x', effect: 'NoExecute' },
    ]),
    wanted: arm,
    result: { taints: [arm], record: key },
  },
  {
    name: 'taken off by a person while it is wanted',
    node: nodeWith([foreign], key),
    wanted: arm,
    result: { taints: [foreign, arm], record: key },
  },
  {
    name: 'another key than before: the old one goes in the same patch',
    node: nodeWith([{ key: 'old', value: 'arm64', effect: 'NoSchedule' }, foreign], 'old'),
    wanted: arm,
    result: { taints: [foreign, arm], record: key },
  },
  {
    name: 'another key, which somebody else has put there: it is not ours',
    node: nodeWith([{ key: 'old', value: 'arm64', effect: 'NoSchedule' }, arm], 'old'),
    wanted: arm,
    result: { taints: [arm] },
  },
  { name: 'not wanted, nothing of ours', node: nodeWith([foreign]) },
  { name: 'not wanted, recorded', node: nodeWith([arm, foreign], key), result: { taints: [foreign] } },
  {
    name: 'not wanted, recorded with a foreign key; another effect is of others',
    node: nodeWith(
      [
        { key: 'k', value: 'arm64', effect: 'NoExecute' },
        { key: 'k', value: 'arm64', effect: 'NoSchedule' },
      ],
      'k',
    ),
    result: { taints: [{ key: 'k', value: 'arm64', effect: 'NoExecute' }] },
  },
  { name: 'not wanted, our prefix and the architecture', node: nodeWith([arm]), result: { taints: [] } },
  { name: 'not wanted, our prefix, another value', node: nodeWith([{ ...arm, value: 'blue' }]) },
  { name: 'not wanted, our prefix, another effect', node: nodeWith([{ ...arm, effect: 'NoExecute' }]) },
  { name: 'not wanted, our prefix, no key of the settings', node: nodeWith([arm]), keys: [] },
  {
    name: 'not wanted, a key of the settings that anybody may use, not recorded',
    node: nodeWith([{ key: 'kubernetes.io/arch', value: 'arm64', effect: 'NoSchedule' }]),
    keys: ['kubernetes.io/arch'],
  },
  { name: 'a record without its taint goes', node: nodeWith([foreign], key), result: { taints: [foreign] } },
];

for (const { name, node, wanted, keys = [key], result } of cases) {
  void t.test(name, async (t) => {
    const after = applied(node, wanted, keys);
    if (result === undefined) {
      t.equal(after, undefined);
      return;
    }
    t.same(after?.spec?.taints ?? [], result.taints);
    t.equal(after?.metadata?.annotations?.['arch.example/taint'], result.record);
    if (after) t.equal(applied(after, wanted, keys), undefined, 'once is enough');
  });
}

void t.test('other annotations stay', async (t) => {
  const node: Node = {
    metadata: { resourceVersion: '7', annotations: { a: 'b' } },
    spec: {},
    status: { nodeInfo: { architecture: 'arm64' } },
  };
  const put = applied(node, arm, [key]);
  t.same(put?.metadata?.annotations, { a: 'b', 'arch.example/taint': key });
  t.same(put && applied(put, undefined, [key])?.metadata?.annotations, { a: 'b' });
});

void t.test('a node whose architecture is not known has only what is recorded', async (t) => {
  const taints = [arm, { key: 'k', value: '', effect: 'NoSchedule' }];
  t.same(ownTaints({ ownTaintKey: undefined, architecture: undefined, taints }, [key]), []);
  t.same(ownTaints({ ownTaintKey: 'k', architecture: undefined, taints }, [key]), [taints[1]]);
});

void t.test('a right taint is alone of its key', async (t) => {
  t.ok(hasRightTaint([foreign, arm], arm));
  t.notOk(hasRightTaint([foreign], arm));
  t.notOk(hasRightTaint([arm, { ...arm, effect: 'NoExecute' }], arm));
  t.notOk(hasRightTaint([{ key, effect: 'NoSchedule' }], arm));
});
