/** Whom the webhook is called for, as the file with the webhooks says. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { createWebhookScope, scopeOf, type InScope } from '../../../src/controller/scope/skipped-pods.ts';
import type { Webhook } from '../../../src/controller/webhook-configuration/webhooks-file.ts';
import { defaultConfiguration } from '../../../src/policy/configuration/configuration.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { noTimers } from '../../support/fake-clock.ts';

const pods = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] };
const webhook = (more: object): Webhook => ({ name: 'x', clientConfig: {}, rules: [pods], ...more });
const named = (operator: string, ...values: string[]): object => ({
  matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator, values }],
});
const optIn = { matchLabels: { archwright: 'on' } };

const shop = { namespace: 'shop', labels: { app: 'web' } };
const cases: readonly {
  readonly name: string;
  readonly webhooks: readonly Webhook[];
  readonly labels?: Record<string, string>;
  readonly seen: boolean;
}[] = [
  { name: 'no selectors', webhooks: [webhook({})], seen: true },
  { name: 'empty selectors', webhooks: [webhook({ namespaceSelector: {}, objectSelector: {} })], seen: true },
  {
    name: 'a namespace left out by its name',
    webhooks: [webhook({ namespaceSelector: named('NotIn', 'shop') })],
    seen: false,
  },
  { name: 'another one', webhooks: [webhook({ namespaceSelector: named('NotIn', 'bank') })], seen: true },
  {
    name: 'chosen by its name, which is a label of each',
    webhooks: [webhook({ namespaceSelector: named('In', 'shop') })],
    seen: true,
  },
  { name: 'one that did not ask for it', webhooks: [webhook({ namespaceSelector: optIn })], seen: false },
  {
    name: 'one that asked for it',
    webhooks: [webhook({ namespaceSelector: optIn })],
    labels: { archwright: 'on' },
    seen: true,
  },
  { name: 'a pod that did not ask for it', webhooks: [webhook({ objectSelector: optIn })], seen: false },
  {
    name: 'a pod that did',
    webhooks: [webhook({ objectSelector: { matchLabels: { app: 'web' } } })],
    seen: true,
  },
  {
    name: 'one of several webhooks',
    webhooks: [webhook({ objectSelector: optIn }), webhook({ namespaceSelector: named('In', 'shop') })],
    seen: true,
  },
  { name: 'no webhooks', webhooks: [], seen: false },
  { name: 'one without rules', webhooks: [webhook({ rules: undefined })], seen: false },
  {
    name: 'rules of other forms',
    webhooks: [webhook({ rules: [null, 'pods', { ...pods, operations: 'CREATE' }] })],
    seen: false,
  },
  {
    name: 'one for changes',
    webhooks: [webhook({ rules: [{ ...pods, operations: ['UPDATE'] }] })],
    seen: false,
  },
  {
    name: 'one for DaemonSets',
    webhooks: [webhook({ rules: [{ ...pods, resources: ['daemonsets'] }] })],
    seen: false,
  },
  {
    name: 'one for other groups',
    webhooks: [webhook({ rules: [{ ...pods, apiGroups: ['apps'] }] })],
    seen: false,
  },
  {
    name: 'one for everything',
    webhooks: [webhook({ rules: [{ apiGroups: ['*'], operations: ['*'], resources: ['*/*'] }] })],
    seen: true,
  },
  {
    name: 'a selector that is none',
    webhooks: [webhook({ namespaceSelector: { matchLabels: 7 } })],
    seen: true,
  },
];
for (const { name, webhooks, labels = {}, seen } of cases) {
  void t.test(`${name}: ${seen ? 'seen' : 'left alone'}`, async (t) => {
    t.equal(scopeOf(webhooks)(shop, labels), seen);
  });
}

void t.test('a pod without labels', async (t) => {
  t.equal(scopeOf([webhook({ objectSelector: optIn })])({ namespace: 'shop', labels: undefined }, {}), false);
  t.equal(scopeOf([webhook({})])({ namespace: 'shop', labels: undefined }, {}), true);
});

void t.test('the file: looked at again after a while; a broken one changes nothing', async (t) => {
  const dir = t.testdir({});
  const webhooksFile = join(dir, 'webhooks.yaml');
  const write = (namespaceSelector: object): Promise<void> =>
    writeFile(
      webhooksFile,
      JSON.stringify({
        webhooks: [
          { name: 'p', clientConfig: { url: 'https://x.example/' }, rules: [pods], namespaceSelector },
        ],
      }),
    );
  let now = 0;
  const lines: string[] = [];
  const log = createLog({ level: 'warn', destination: { write: (line) => void lines.push(line) } });
  const clock = { ...noTimers, now: () => now, monotonic: () => now };
  const configuration = { ...defaultConfiguration(), webhooksFile };
  const sight = createWebhookScope({ configuration: () => configuration, clock, log });
  const isSeen = async (): Promise<boolean> => {
    const sees: InScope = await sight();
    return sees(shop, {});
  };
  t.equal(await isSeen(), true, 'no file yet: as without one');
  now += 10_000;
  t.equal(await isSeen(), true);
  t.equal(lines.length, 1, 'told once');
  await write(optIn);
  now += 9_000;
  t.equal(await isSeen(), true);
  now += 1_000;
  t.equal(await isSeen(), false);
  await writeFile(webhooksFile, 'webhooks: {');
  now += 10_000;
  t.equal(await isSeen(), false, 'the last good one');
  t.equal(lines.length, 2);
  await write({});
  now += 10_000;
  t.equal(await isSeen(), true);
  await rm(webhooksFile);
  now += 10_000;
  t.equal(await isSeen(), true);
  t.equal(lines.length, 3);

  const without = createWebhookScope({ configuration: () => defaultConfiguration(), clock, log });
  t.equal((await without())(shop, {}), true);
});
