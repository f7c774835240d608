import t from 'tap';
import { readShape } from '../../../src/http/json.ts';
import { labelSelector, selects, type Selector } from '../../../src/policy/resources/schemas.ts';

function selector(value: unknown): Selector {
  return readShape(labelSelector, value, (where, problem) => new Error(`${where} ${problem}`));
}

/** Such as `app In api,web; zone Exists`. */
function expressions(text: string): Selector {
  const matchExpressions = text.split('; ').map((each) => {
    const [key, operator, values] = each.split(' ');
    return { key, operator, ...(values !== undefined && { values: values.split(',') }) };
  });
  return selector({ matchExpressions });
}

const web = { app: 'web', tier: 'front', empty: '' };

t.test('selectors match labels as in Kubernetes', async (t) => {
  const cases: [
    about: string,
    selector: Selector,
    labels: Record<string, string> | undefined,
    selected: boolean,
  ][] = [
    ['empty selects all', selector({}), web, true],
    ['empty selects objects without labels', selector({}), undefined, true],
    ['a label', selector({ matchLabels: { app: 'web' } }), web, true],
    ['another value', selector({ matchLabels: { app: 'api' } }), web, false],
    ['an absent label', selector({ matchLabels: { zone: 'a' } }), web, false],
    ['no labels', selector({ matchLabels: { app: 'web' } }), undefined, false],
    ['an empty value', selector({ matchLabels: { empty: '' } }), web, true],
    ['an empty value is not an absent one', selector({ matchLabels: { zone: '' } }), web, false],
    ['all labels must match', selector({ matchLabels: { app: 'web', tier: 'back' } }), web, false],
    [
      'a label and an expression',
      selector({ matchLabels: { app: 'web' }, matchExpressions: [{ key: 'zone', operator: 'Exists' }] }),
      web,
      false,
    ],
    ['In', expressions('app In api,web'), web, true],
    ['In, none of them', expressions('app In api'), web, false],
    ['In, absent', expressions('zone In a'), web, false],
    ['NotIn', expressions('app NotIn api'), web, true],
    ['NotIn, one of them', expressions('app NotIn api,web'), web, false],
    ['NotIn, absent', expressions('zone NotIn a'), web, true],
    ['NotIn, no labels', expressions('zone NotIn a'), undefined, true],
    ['Exists', expressions('empty Exists'), web, true],
    ['Exists, absent', expressions('zone Exists'), web, false],
    ['DoesNotExist', expressions('zone DoesNotExist'), web, true],
    ['DoesNotExist, present', expressions('empty DoesNotExist'), web, false],
    ['contradictory expressions for one key', expressions('app Exists; app NotIn web'), web, false],
    ['an inherited property is no label', expressions('constructor Exists'), web, false],
  ];
  for (const [about, given, labels, selected] of cases) t.equal(selects(given, labels), selected, about);
  t.equal(selects(selector({ matchLabels: { a: 'b' } }), null), false, 'labels that are null');
});

t.test('the first problem is reported with its position', (t) => {
  const expression = (...[given]: readonly unknown[]) => ({ matchExpressions: [given] });
  for (const [value, problem] of [
    [{ matchLabels: { '-': 'x' } }, 'matchLabels.0.key must be a label key'],
    [{ matchLabels: { a: 1 } }, 'matchLabels.0.values.0 must be a label value'],
    [{ matchLabels: [] }, 'matchLabels must be an object'],
    [{ matchExpressions: {} }, 'matchExpressions must be a list'],
    [expression('x'), 'matchExpressions.0 must be an object'],
    [expression({ operator: 'In' }), 'matchExpressions.0.key is missing'],
    [expression({ key: 'a', operator: 'Gt' }), /^matchExpressions\.0\.operator must be one of "In"/],
    [expression({ key: 'a', operator: 'In' }), /^matchExpressions\.0 must have values for In/],
    [expression({ key: 'a', operator: 'Exists', values: ['x'] }), /^matchExpressions\.0 must have values/],
    [expression({ key: 'a', operator: 'In', values: ['-'] }), /values\.0 must be a label value/],
    ['x', ' must be an object'],
  ] as const)
    t.throws(() => selector(value), { message: problem });
  t.end();
});
