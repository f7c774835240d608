import t from 'tap';
import type { NodeChoice } from '../../../src/controller/state/cached.ts';
import { choosing } from '../../../src/controller/pods/chosen-nodes.ts';

const expression = (operator: string, ...values: string[]) => ({ key: 'cores', operator, values });
const term = (...matchExpressions: ReturnType<typeof expression>[]) => ({ matchExpressions });
const field = (operator: string, name: string) => ({ key: 'metadata.name', operator, values: [name] });
const labels = { a: 'b', c: '', cores: '16' };

const cases: readonly (readonly [name: string, terms: NodeChoice['terms'], isChosen: boolean])[] = [
  ['no terms', undefined, true],
  ['In', [term(expression('In', '8', '16'))], true],
  ['In, another value', [term(expression('In', '8'))], false],
  ['In, no label', [term({ ...expression('In', '16'), key: 'zone' })], false],
  ['DoesNotExist, no label', [term({ ...expression('DoesNotExist'), key: 'zone' })], true],
  ['expressions are ANDed', [term(expression('Exists'), expression('In', '8'))], false],
  ['terms are ORed', [term(expression('In', '8')), term(expression('Exists'))], true],
  ['no list of terms matches without a term', [], false],
  ['an empty term', [{}], false],
  ['the name of the node', [{ matchFields: [field('In', 'node')] }], true],
  ['another name', [{ matchFields: [field('NotIn', 'node')] }], false],
];

t.test("a pod's node selector and affinity choose a node", (t) => {
  const node = { name: 'node', labels };
  for (const [name, terms, expected] of cases)
    t.equal(choosing({ nodeSelector: {}, terms })(node), expected, name);
  t.ok(choosing({ nodeSelector: { a: 'b', c: '' }, terms: undefined })(node));
  t.notOk(choosing({ nodeSelector: { a: 'b', c: 'd' }, terms: undefined })(node));
  t.notOk(choosing({ nodeSelector: { zone: '' }, terms: undefined })(node));
  t.notOk(choosing({ nodeSelector: { toString: 'x' }, terms: undefined })(node));
  const many = Array.from({ length: 3000 }, () => term(expression('In', '16')));
  t.notOk(choosing({ nodeSelector: {}, terms: many })(node), 'too large to compare with each node');
  t.end();
});
