import t from 'tap';
import { issueAuthority } from '../../../../src/certificates/issue.ts';
import type { Certificate } from '../../../../src/certificates/pem.ts';
import { readCaBundle, writeCaBundle, type Webhook } from '../../../../src/controller/state/webhooks-file.ts';
import { decideWebhooks } from '../../../../src/controller/features/webhook-configuration/decide.ts';
import { like } from '../../../support/like.ts';

const now = Date.now();

async function authority(from = now - 1000, to = now + 100_000): Promise<Certificate> {
  return (await issueAuthority({ from, to })).certificate;
}

function webhook(name: string, policy: string, changed: Partial<Webhook> = {}): Webhook {
  return {
    name,
    failurePolicy: policy,
    clientConfig: { service: { namespace: 'ns', name: 'hook', port: 443 } },
    ...changed,
  };
}

/** What each endpoint answers. */
const answers = {
  there: [undefined],
  partly: [undefined, 'no'],
  none: ['no'],
} as const;

t.test('when a webhook is added, and with which failurePolicy', async (t) => {
  const bundle = [await authority()];
  const inForce = (policy: string): Webhook => {
    const plain = webhook('a', policy);
    return { ...plain, clientConfig: { ...plain.clientConfig, caBundle: writeCaBundle(bundle) } };
  };
  const elsewhere = webhook('a', 'Fail', {
    clientConfig: { url: 'https://old.example/mutate' },
    timeoutSeconds: 1,
  });
  interface Expected {
    readonly policy?: string;
    readonly url?: string;
    readonly waiting?: boolean;
  }
  const fail = { policy: 'Fail' };
  const ignore = { policy: 'Ignore' };
  const stays = { policy: 'Fail', url: 'https://old.example/mutate', waiting: true };
  const cases: [string, Webhook[], keyof typeof answers, string, Expected][] = [
    ['new, and it responds', [], 'there', 'Fail', fail],
    ['new, and it does not respond', [], 'none', 'Fail', { waiting: true }],
    ['active, and it responds', [inForce('Fail')], 'there', 'Fail', fail],
    ['active, and it does not respond', [inForce('Fail')], 'none', 'Fail', fail],
    ['the wrong policy, and it does not respond', [inForce('Ignore')], 'none', 'Fail', fail],
    ['Ignore stays', [inForce('Ignore')], 'none', 'Ignore', ignore],
    ['a new address, which responds', [elsewhere], 'there', 'Fail', fail],
    ['a new address, which does not respond', [elsewhere], 'none', 'Fail', stays],
  ];
  for (const [what, actual, answer, policy, expected] of cases) {
    const probe = () => Promise.resolve(answers[answer]);
    const decided = await decideWebhooks({ wanted: [webhook('a', policy)], actual, bundle, probe, now });
    const [first] = decided.webhooks;
    t.equal(first?.failurePolicy, expected.policy, what);
    t.equal(first?.clientConfig.url, expected.url, what);
    t.strictSame(decided.waiting, expected.waiting === true ? ['a'] : [], what);
    t.equal(decided.reason, expected.waiting === true ? 'no' : undefined, what);
    if (first) t.equal(first.clientConfig.caBundle, writeCaBundle(bundle), `${what}: caBundle`);
  }
});

const idsOf = (all: readonly Certificate[] | undefined) => all?.map(({ id }) => id);

t.test('the authorities in caBundle', async (t) => {
  const [wanted, old] = [await authority(), await authority()];
  const expired = await authority(now - 5000, now - 1000);
  const cases: [string, Certificate[] | undefined, keyof typeof answers, Certificate[]][] = [
    ['none yet', undefined, 'there', [wanted]],
    ['the current one', [wanted], 'partly', [wanted]],
    ['an old one in use', [old], 'partly', [wanted, old]],
    ['an old one in use, and the current one', [old, wanted], 'partly', [wanted, old]],
    ['an old one out of use', [wanted, old], 'there', [wanted]],
    ['an old one, and an absent webhook', [wanted, old], 'none', [wanted, old]],
    ['an expired one', [wanted, expired], 'partly', [wanted]],
    ['garbage', [], 'partly', [wanted]],
  ];
  for (const [what, before, answer, expected] of cases) {
    const plain = webhook('a', 'Fail');
    const caBundle = before?.length === 0 ? 'Z2FyYmFnZQ==' : before && writeCaBundle(before);
    const clientConfig = { ...plain.clientConfig, ...(caBundle !== undefined && { caBundle }) };
    const decided = await decideWebhooks({
      wanted: [plain],
      actual: [{ ...plain, clientConfig }],
      bundle: [wanted],
      probe: () => Promise.resolve(answers[answer]),
      now,
    });
    const found = readCaBundle(decided.webhooks[0]?.clientConfig.caBundle);
    t.strictSame(idsOf(found), idsOf(expected), what);
    t.equal(decided.extra, expected.length > 1, what);
  }
});

t.test('a caBundle that another program writes stays, byte for byte', async (t) => {
  const bundle = [await authority()];
  const plain = webhook('a', 'Fail');
  const caBundle = Buffer.from(`# service CA\n${(await authority()).pem}`).toString('base64');
  const probe = () => Promise.resolve(answers.there);
  const bundleFor = async (clientConfig: Webhook['clientConfig'] | undefined) => {
    const actual = clientConfig ? [{ ...plain, clientConfig }] : [];
    const decided = await decideWebhooks({ wanted: [plain], actual, bundle, isInjected: true, probe, now });
    return decided.webhooks[0]?.clientConfig.caBundle;
  };
  t.equal(await bundleFor({ ...plain.clientConfig, caBundle }), caBundle);
  t.equal(await bundleFor(undefined), writeCaBundle(bundle), 'a new webhook is never without one');
  t.equal(await bundleFor(plain.clientConfig), writeCaBundle(bundle), 'nor one that has lost it');
});

t.test('each of several webhooks is decided separately', async (t) => {
  const bundle = [await authority()];
  const wanted = [
    webhook('a', 'Fail'),
    webhook('b', 'Ignore', { clientConfig: { url: 'https://b.example/' } }),
    webhook('c', 'Ignore', { clientConfig: { url: 'https://c.example/' } }),
  ];
  const decided = await decideWebhooks({
    wanted,
    actual: [
      webhook('stranger', 'Fail'),
      webhook('b', 'Ignore', { clientConfig: { url: 'https://b.example/old-path' } }),
    ],
    bundle,
    probe: ({ name }) => Promise.resolve(answers[name === 'c' ? 'none' : 'there']),
    now,
  });
  like(t, decided.webhooks, [{ name: 'a' }, { name: 'b' }]);
  t.equal(decided.webhooks.length, 2);
  t.strictSame(decided.waiting, ['c']);
  t.equal(decided.webhooks[1]?.clientConfig.url, 'https://b.example/', 'another path is not a new address');
});
