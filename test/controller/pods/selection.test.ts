/** For which pods the API server calls the webhook, by the webhooks file; and which nodes a pod chooses. */
import t from 'tap';
import { scopeOf } from '../../../src/controller/pods/skipped-pods.ts';
import { choosing } from '../../../src/controller/pods/chosen-nodes.ts';
import type { NodeChoice } from '../../../src/controller/state/cached.ts';
import type { Webhook } from '../../../src/controller/state/webhooks-file.ts';

const pods = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] };
const webhook = (more: object): Webhook => ({ name: 'x', clientConfig: {}, rules: [pods], ...more });
const named = (operator: string, ...values: string[]): object => ({
  matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator, values }],
});
const optIn = { matchLabels: { archwright: 'on' } };

const shop = { namespace: 'shop', labels: { app: 'web' } };
const on = { archwright: 'on' };
const rules = (more: object): Webhook => webhook({ rules: [{ ...pods, ...more }] });

const cases: [name: string, webhooks: Webhook[], inScope: boolean, namespaceLabels?: typeof on][] = [
  ['no selectors', [webhook({})], true],
  ['empty selectors', [webhook({ namespaceSelector: {}, objectSelector: {} })], true],
  ['a namespace excluded by its name', [webhook({ namespaceSelector: named('NotIn', 'shop') })], false],
  ['another one', [webhook({ namespaceSelector: named('NotIn', 'bank') })], true],
  ['a namespace chosen by its name', [webhook({ namespaceSelector: named('In', 'shop') })], true],
  ['a namespace without the opt-in label', [webhook({ namespaceSelector: optIn })], false],
  ['a namespace with the opt-in label', [webhook({ namespaceSelector: optIn })], true, on],
  ['a pod without the opt-in label', [webhook({ objectSelector: optIn })], false],
  [
    'a pod with the label of the selector',
    [webhook({ objectSelector: { matchLabels: { app: 'web' } } })],
    true,
  ],
  [
    'one of several webhooks',
    [webhook({ objectSelector: optIn }), webhook({ namespaceSelector: named('In', 'shop') })],
    true,
  ],
  ['no webhooks', [], false],
  ['one without rules', [webhook({ rules: undefined })], false],
  ['rules of other forms', [webhook({ rules: [null, 'pods', { ...pods, operations: 'CREATE' }] })], false],
  ['one for updates', [rules({ operations: ['UPDATE'] })], false],
  ['one for DaemonSets', [rules({ resources: ['daemonsets'] })], false],
  ['one for other groups', [rules({ apiGroups: ['apps'] })], false],
  ['one for everything', [rules({ apiGroups: ['*'], operations: ['*'], resources: ['*/*'] })], true],
  ['a selector that is not valid', [webhook({ namespaceSelector: { matchLabels: 7 } })], true],
];

t.test('for which pods the webhook is called', async (t) => {
  for (const [name, webhooks, inScope, namespaceLabels = {}] of cases)
    t.equal(scopeOf(webhooks)(shop, namespaceLabels), inScope, name);
  const unlabelled = { namespace: 'shop', labels: undefined };
  t.equal(scopeOf([webhook({ objectSelector: optIn })])(unlabelled, {}), false);
  t.equal(scopeOf([webhook({})])(unlabelled, {}), true);
});

const expression = (operator: string, ...values: string[]) => ({ key: 'cores', operator, values });
const term = (...matchExpressions: ReturnType<typeof expression>[]) => ({ matchExpressions });
const field = (operator: string, name: string) => ({ key: 'metadata.name', operator, values: [name] });

const choices: readonly (readonly [name: string, terms: NodeChoice['terms'], isChosen: boolean])[] = [
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
  const node = { name: 'node', labels: { a: 'b', c: '', cores: '16' } };
  for (const [name, terms, expected] of choices)
    t.equal(choosing({ nodeSelector: {}, terms })(node), expected, name);
  t.ok(choosing({ nodeSelector: { a: 'b', c: '' }, terms: undefined })(node));
  t.notOk(choosing({ nodeSelector: { a: 'b', c: 'd' }, terms: undefined })(node));
  t.notOk(choosing({ nodeSelector: { zone: '' }, terms: undefined })(node));
  t.notOk(choosing({ nodeSelector: { toString: 'x' }, terms: undefined })(node));
  const many = Array.from({ length: 3000 }, () => term(expression('In', '16')));
  t.notOk(choosing({ nodeSelector: {}, terms: many })(node), 'too large to compare with each node');
  t.end();
});
