import t from 'tap';
import { issueAuthority } from '../../../../src/certificates/issue.ts';
import type { Certificate } from '../../../../src/certificates/pem.ts';
import { readCaBundle, writeCaBundle, type Webhook } from '../../../../src/controller/state/webhooks-file.ts';
import { decideWebhooks } from '../../../../src/controller/features/webhook-configuration/decide.ts';

const now = Date.now();

async function authority(from = now - 1000, to = now + 100_000): Promise<Certificate> {
  return (await issueAuthority({ from, to })).certificate;
}

function webhook(name: string, url?: string): Webhook {
  const service = { namespace: 'ns', name: 'hook', port: 443 };
  return { name, failurePolicy: 'Fail', clientConfig: url === undefined ? { service } : { url } };
}

/** What each endpoint answers. */
const answers = {
  there: [undefined],
  partly: [undefined, 'no'],
  none: ['no'],
} as const;

t.test('when a webhook is added, changed or moved', async (t) => {
  const bundle = [await authority()];
  const wanted = webhook('a');
  const elsewhere = webhook('a', 'https://old.example/mutate');
  const changed = { ...wanted, failurePolicy: 'Ignore' };
  const cases: [string, Webhook[], keyof typeof answers, inForce: Webhook | undefined, waits: boolean][] = [
    ['new, and it responds', [], 'there', wanted, false],
    ['new, and it does not respond', [], 'none', undefined, true],
    ['changed by another writer, and it does not respond', [changed], 'none', wanted, false],
    ['a new address, which responds', [elsewhere], 'partly', wanted, false],
    ['a new address, which does not respond', [elsewhere], 'none', elsewhere, true],
  ];
  const caBundle = writeCaBundle(bundle);
  for (const [what, actual, answer, inForce, waits] of cases) {
    const probe = () => Promise.resolve(answers[answer]);
    const decided = await decideWebhooks({ wanted: [wanted], actual, bundle, probe, now });
    const expected = inForce && { ...inForce, clientConfig: { ...inForce.clientConfig, caBundle } };
    t.strictSame(decided.webhooks, expected ? [expected] : [], what);
    t.strictSame([decided.waiting, decided.reason], waits ? [['a'], 'no'] : [[], undefined], what);
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
    const plain = webhook('a');
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
  const plain = webhook('a');
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
  const decided = await decideWebhooks({
    wanted: [webhook('a'), webhook('b', 'https://b.example/'), webhook('c', 'https://c.example/')],
    actual: [webhook('stranger'), webhook('b', 'https://b.example/old-path')],
    bundle: [await authority()],
    probe: ({ name }) => Promise.resolve(answers[name === 'c' ? 'none' : 'there']),
    now,
  });
  t.strictSame(
    decided.webhooks.map(({ name, clientConfig: { url } }) => [name, url]),
    [
      ['a', undefined],
      ['b', 'https://b.example/'],
    ],
    'another path is not a new address',
  );
  t.strictSame(decided.waiting, ['c']);
});
