import t from 'tap';
import type { NodeChoice } from '../../../src/controller/state/cached.ts';
import { selectorsOf } from '../../../src/controller/pods/chosen-nodes.ts';

const expression = (operator: string, ...values: string[]) => ({ key: 'cores', operator, values });
const term = (...matchExpressions: ReturnType<typeof expression>[]) => ({ matchExpressions });

const cases: readonly (readonly [string, NodeChoice, readonly string[]])[] = [
  ['labels only', { nodeSelector: { a: 'b', c: '' }, terms: undefined }, ['a=b,c=']],
  [
    'every operator',
    {
      nodeSelector: { a: 'b' },
      terms: [
        term(expression('In', '1', '2'), expression('NotIn', '3')),
        term(expression('Exists')),
        term(expression('DoesNotExist')),
        term(expression('Gt', '16'), expression('Lt', '64')),
      ],
    },
    ['a=b,cores in (1,2),cores notin (3)', 'a=b,cores', 'a=b,!cores', 'a=b,cores>16,cores<64'],
  ],
  [
    'a term that Kubernetes cannot evaluate matches no node',
    {
      nodeSelector: {},
      terms: [
        term(expression('Near', '1')),
        term(expression('Gt', 'many')),
        term(expression('In', 'a b')),
        term(expression('Exists'), expression('Unknown')),
        term(expression('Exists')),
      ],
    },
    ['cores'],
  ],
  ['empty terms match no node', { nodeSelector: {}, terms: [{}] }, []],
];

t.test("a pod's node selector and affinity as label selectors", (t) => {
  for (const [name, choice, expected] of cases) t.strictSame(selectorsOf(choice), expected, name);
  const groups = [[expression('Exists')], [expression('In', '1')]];
  t.strictSame(selectorsOf({ nodeSelector: { a: 'b' }, terms: undefined }, groups), [
    'a=b,cores',
    'a=b,cores in (1)',
  ]);
  t.end();
});
