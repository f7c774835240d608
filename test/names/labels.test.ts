/** Label keys and values, and what labels say of a node: its architecture, its pool. */
import { test } from 'tap';
import { isArchitecture, unknownArchitecture } from '../../src/names/architecture.ts';
import { isLabelKey, isLabelValue, isNonEmptyLabelValue, meets } from '../../src/names/labels.ts';
import { poolOf } from '../../src/names/node-pool.ts';

const valid = ['arm64', '386', 'a', '1', 'X', 'A.b_c-d', 'x'.repeat(63)];
const invalid = [
  'a b',
  'a\n',
  'a\u0000',
  ' ',
  'x'.repeat(64),
  ...'-a a- .a a_ a/b a,b ä __proto__'.split(' '),
];

test('label values are valid as in Kubernetes, and those that are not empty are architectures', async (t) => {
  for (const text of [...valid, ...invalid])
    for (const check of [isLabelValue, isNonEmptyLabelValue, isArchitecture])
      t.equal(check(text), valid.includes(text), JSON.stringify(text));
  t.equal(isLabelValue(''), true, 'a label may have no value');
  for (const check of [isNonEmptyLabelValue, isArchitecture]) t.equal(check(''), false);
  for (const text of ['unknown', 'Unknown']) t.equal(isArchitecture(text), false, text);
  for (const value of [undefined, null, 1, ['a']]) t.equal(isLabelValue(value), false);
});

test('label keys are valid as in Kubernetes', async (t) => {
  for (const text of ['arch', 'kubernetes.io/arch', 'a.b-c.d/E_f', `${'x'.repeat(253)}/a`, 'a/b']) {
    t.equal(isLabelKey(text), true, text);
  }
  const bad = ['', '/a', 'a/', 'a/b/c', 'A.io/b', '.io/b', 'a..b/c', '-a/b', 'a b'];
  for (const text of [...bad, `${'x'.repeat(254)}/a`, `a/${'x'.repeat(64)}`]) {
    t.equal(isLabelKey(text), false, JSON.stringify(text));
  }
});

test('requirements are met as in Kubernetes', async (t) => {
  type Labels = readonly (string | undefined)[];
  const cases: [operator: string, values: string[], meeting: Labels, others: Labels][] = [
    ['Exists', [], ['a', ''], [undefined]],
    ['DoesNotExist', [], [undefined], ['a', '']],
    ['In', ['a', 'b'], ['a', 'b'], ['c', undefined]],
    ['NotIn', ['a'], ['b', undefined], ['a']],
    ['Gt', ['5'], ['6'], ['5', 'x', undefined]],
    ['Lt', ['5'], ['4'], ['5', 'x', undefined]],
    ['Near', ['5'], [], ['4', '5', undefined]],
  ];
  for (const [operator, values, meeting, others] of cases) {
    for (const value of [...meeting, ...others])
      t.equal(
        meets({ operator, values }, value),
        meeting.includes(value),
        `${value} ${operator} ${values.join()}`,
      );
  }
});

test('an unknown architecture has a suggestion', async (t) => {
  const rows =
    'amd46=amd64 AMD64=amd64 x86_64=amd64 aarch64=arm64 arm46=arm64 armhf=arm s309x=s390x ppc64el=ppc64le';
  for (const [name = '', meant] of rows.split(' ').map((row) => row.split('=')))
    t.equal(unknownArchitecture(name), `unknown architecture ${name}; did you mean ${meant}?`);
  t.equal(unknownArchitecture('mainframe'), 'unknown architecture mainframe');
  t.match(unknownArchitecture('x'.repeat(1000)), /^unknown architecture x{60}\.\.\.$/u);
});

test('architectures of Go and of the cluster are known', async (t) => {
  for (const name of ['amd64', 'arm64', 'arm', '386', 'riscv64', 'loong64', 's390x', 'mips64le'])
    t.equal(unknownArchitecture(name), undefined, name);
  t.equal(unknownArchitecture('amd46', ['amd46']), undefined);
});

const base = { 'kubernetes.io/arch': 'arm64', 'node.kubernetes.io/instance-type': 'm7g.large' };

test('the pool of a node follows from its labels', async (t) => {
  for (const [labels, pool] of [
    [{ 'karpenter.sh/nodepool': 'a', 'eks.amazonaws.com/nodegroup': 'b' }, 'karpenter.sh/nodepool=a'],
    [{ 'eks.amazonaws.com/nodegroup': 'b' }, 'eks.amazonaws.com/nodegroup=b'],
    [{ 'cloud.google.com/gke-nodepool': 'c' }, 'cloud.google.com/gke-nodepool=c'],
    [{ 'kubernetes.azure.com/agentpool': 'd', agentpool: 'd' }, 'kubernetes.azure.com/agentpool=d'],
    [{ agentpool: 'e' }, 'agentpool=e'],
    [{ 'node-role.kubernetes.io/control-plane': '' }, 'control-plane/arm64'],
    [{}, 'arm64/m7g.large'],
  ] as const)
    t.equal(poolOf({ ...base, ...labels }), pool);
  t.equal(poolOf({}), 'unknown/unknown');
});
