import t from 'tap';
import { isLabelKey, isLabelValue } from '../../src/names/labels.ts';

t.test('label values', async (t) => {
  for (const text of ['arm64', 'a', '1', 'A.b_c-d', 'x'.repeat(63)]) t.equal(isLabelValue(text), true, text);
  for (const text of ['', ' ', 'a b', '-a', 'a-', '.a', 'a/b', 'ä', 'a\n', 'x'.repeat(64), '__proto__']) {
    t.equal(isLabelValue(text), false, JSON.stringify(text));
  }
});

t.test('label keys', async (t) => {
  for (const text of ['arch', 'kubernetes.io/arch', 'a.b-c.d/E_f', `${'x'.repeat(253)}/a`, 'a/b']) {
    t.equal(isLabelKey(text), true, text);
  }
  for (const text of [
    '',
    '/a',
    'a/',
    'a/b/c',
    'A.io/b',
    '.io/b',
    'a..b/c',
    '-a/b',
    'a b',
    `${'x'.repeat(254)}/a`,
    `a/${'x'.repeat(64)}`,
  ]) {
    t.equal(isLabelKey(text), false, JSON.stringify(text));
  }
});
