import t from 'tap';
import { readSelector, selects, type Selector } from '../../../src/policy/effective/label-selector.ts';

function selector(value: unknown): Selector {
  const problems: string[] = [];
  const found = readSelector(value, 'selector', problems);
  if (problems.length > 0) throw new Error(problems.join());
  return found;
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

t.test('problems name their position', async (t) => {
  const problems: string[] = [];
  readSelector(
    {
      matchLabels: { '-': 'x', a: 1 },
      matchExpressions: [
        'x',
        { operator: 'In' },
        { key: 'a', operator: 'Gt' },
        { key: 'a', operator: 'In' },
        { key: 'a', operator: 'Exists', values: ['x'] },
        { key: 'a', operator: 'In', values: ['-'] },
        { key: '-', operator: 'Exists' },
      ],
    },
    'spec.s',
    problems,
  );
  t.strictSame(problems, [
    'spec.s.matchLabels[-] is not a valid label key',
    'spec.s.matchLabels[a] must be a label value',
    'spec.s.matchExpressions[0] must be an object',
    'spec.s.matchExpressions[1].key must be a label key',
    'spec.s.matchExpressions[2].operator must be one of In, NotIn, Exists, DoesNotExist',
    'spec.s.matchExpressions[3].values must not be empty for In',
    'spec.s.matchExpressions[4].values must be empty for Exists',
    'spec.s.matchExpressions[5].values must be a list of label values',
    'spec.s.matchExpressions[6].key is not a valid label key',
  ]);
  for (const wrong of [null, 'x', [], { matchLabels: [] }, { matchExpressions: {} }]) {
    const found: string[] = [];
    readSelector(wrong, 's', found);
    t.equal(found.length, 1, JSON.stringify(wrong));
  }
});
