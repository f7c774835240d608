import t from 'tap';
import { isArchitecture } from '../../src/names/architecture.ts';
import { isLabelKey, isLabelValue, isNonEmptyLabelValue, meets } from '../../src/names/labels.ts';

const valid = ['arm64', '386', 'a', '1', 'X', 'A.b_c-d', 'x'.repeat(63)];
const invalid = [
  ' ',
  'a b',
  '-a',
  'a-',
  '.a',
  'a_',
  'a/b',
  'a,b',
  'ä',
  'a\n',
  'a\u0000',
  'x'.repeat(64),
  '__proto__',
];

t.test('label values are valid as in Kubernetes', async (t) => {
  for (const text of valid) {
    t.equal(isLabelValue(text), true, text);
    t.equal(isNonEmptyLabelValue(text), true, text);
  }
  for (const text of invalid) {
    t.equal(isLabelValue(text), false, JSON.stringify(text));
    t.equal(isNonEmptyLabelValue(text), false, JSON.stringify(text));
  }
  t.equal(isLabelValue(''), true, 'a label may have no value');
  t.equal(isNonEmptyLabelValue(''), false);
  for (const value of [undefined, null, 1, ['a']]) t.equal(isLabelValue(value), false);
});

t.test('an architecture is a non-empty label value', async (t) => {
  for (const text of valid) t.equal(isArchitecture(text), true, text);
  for (const text of [...invalid, '', 'unknown', 'Unknown'])
    t.equal(isArchitecture(text), false, JSON.stringify(text));
});

t.test('label keys are valid as in Kubernetes', async (t) => {
  for (const text of ['arch', 'kubernetes.io/arch', 'a.b-c.d/E_f', `${'x'.repeat(253)}/a`, 'a/b']) {
    t.equal(isLabelKey(text), true, text);
  }
  const bad = ['', '/a', 'a/', 'a/b/c', 'A.io/b', '.io/b', 'a..b/c', '-a/b', 'a b'];
  for (const text of [...bad, `${'x'.repeat(254)}/a`, `a/${'x'.repeat(64)}`]) {
    t.equal(isLabelKey(text), false, JSON.stringify(text));
  }
});

t.test('requirements are met as in Kubernetes', async (t) => {
  const cases: [
    operator: string,
    values: string[],
    meeting: (string | undefined)[],
    others: (string | undefined)[],
  ][] = [
    ['Exists', [], ['a', ''], [undefined]],
    ['DoesNotExist', [], [undefined], ['a', '']],
    ['In', ['a', 'b'], ['a', 'b'], ['c', undefined]],
    ['NotIn', ['a'], ['b', undefined], ['a']],
    ['Gt', ['5'], ['6'], ['5', 'x', undefined]],
    ['Lt', ['5'], ['4'], ['5', 'x', undefined]],
    ['Near', ['5'], [], ['4', '5', undefined]],
  ];
  for (const [operator, values, meeting, others] of cases) {
    for (const value of meeting)
      t.ok(meets({ operator, values }, value), `${value} ${operator} ${values.join()}`);
    for (const value of others)
      t.notOk(meets({ operator, values }, value), `${value} ${operator} ${values.join()}`);
  }
});
