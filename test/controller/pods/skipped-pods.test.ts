/** For which pods the API server calls the webhook, by the webhooks file. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { createWebhookScope, scopeOf } from '../../../src/controller/pods/skipped-pods.ts';
import type { Webhook } from '../../../src/controller/state/webhooks-file.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { captureLog } from '../../support/captured.ts';
import { noTimers } from '../../support/fake-clock.ts';

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

t.test('the webhooks file is read again after a while; a broken one changes nothing', async (t) => {
  const webhooksFile = join(t.testdir({}), 'webhooks.yaml');
  let now = 0;
  const { log, lines } = captureLog('warn');
  const clock = { ...noTimers, now: () => now, monotonic: () => now };
  const configuration = { ...defaultConfiguration(), webhooksFile };
  const scopeNow = createWebhookScope({ configuration: () => configuration, clock, log });
  const accepting = (namespaceSelector: object): string =>
    JSON.stringify({
      webhooks: [
        { name: 'p', clientConfig: { url: 'https://x.example/' }, rules: [pods], namespaceSelector },
      ],
    });
  const looks: [
    about: string,
    file: string | undefined,
    afterMs: number,
    inScope: boolean,
    logged: number,
  ][] = [
    ['no file yet: as without one', undefined, 0, true, 1],
    ['logged once', undefined, 10_000, true, 1],
    ['too early to look again', accepting(optIn), 9_000, true, 1],
    ['the file', accepting(optIn), 1_000, false, 1],
    ['the last good one', 'webhooks: {', 10_000, false, 2],
    ['a good one again', accepting({}), 10_000, true, 2],
    ['removed', undefined, 10_000, true, 3],
  ];
  for (const [about, file, afterMs, inScope, logged] of looks) {
    if (file === undefined) await rm(webhooksFile, { force: true });
    else await writeFile(webhooksFile, file);
    now += afterMs;
    t.equal((await scopeNow())(shop, {}), inScope, about);
    t.equal(lines.length, logged, about);
  }
  const without = createWebhookScope({ configuration: () => defaultConfiguration(), clock, log });
  t.equal((await without())(shop, {}), true);
});
