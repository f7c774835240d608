import t from 'tap';
import { issueAuthority } from '../../../src/controller/certificates/issue.ts';
import type { Certificate } from '../../../src/controller/certificates/pem.ts';
import { readCaBundle, writeCaBundle } from '../../../src/controller/webhook-configuration/ca-bundle.ts';
import { decideWebhooks } from '../../../src/controller/webhook-configuration/decide.ts';
import type { Availability } from '../../../src/controller/webhook-configuration/webhook-availability.ts';
import type { Webhook } from '../../../src/controller/webhook-configuration/webhooks-file.ts';

const now = Date.now();
const second = 1000;

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

const available = (absentMs: number | undefined, ...answers: (string | undefined)[]): Availability => ({
  probe: () => Promise.resolve(answers),
  absentMs,
});
const availabilities = {
  there: available(undefined, undefined),
  partly: available(undefined, undefined, 'no'),
  unready: available(undefined, 'no'),
  gone: available(30 * second, 'no'),
  justGone: available(30 * second - 1, 'no'),
};

t.test('when a webhook comes into force, and with which policy', async (t) => {
  const bundle = [await authority()];
  const inForce = (policy: string): Webhook => {
    const plain = webhook('a', policy);
    return { ...plain, clientConfig: { ...plain.clientConfig, caBundle: writeCaBundle(bundle) } };
  };
  const elsewhere = webhook('a', 'Fail', {
    clientConfig: { url: 'https://old.example/mutate' },
    timeoutSeconds: 1,
  });
  type Case = [
    string,
    Webhook[],
    keyof typeof availabilities,
    string,
    { policy?: string; url?: string; waiting?: boolean; relaxed?: boolean },
  ];
  const cases: Case[] = [
    ['new, and it answers', [], 'there', 'Fail', { policy: 'Fail' }],
    ['new, and it does not', [], 'unready', 'Fail', { waiting: true }],
    ['new, and nobody is there', [], 'gone', 'Ignore', { waiting: true }],
    ['in force, and it answers', [inForce('Fail')], 'there', 'Fail', { policy: 'Fail' }],
    ['in force, and it does not answer us', [inForce('Fail')], 'unready', 'Fail', { policy: 'Fail' }],
    ['in force, gone a moment ago', [inForce('Fail')], 'justGone', 'Fail', { policy: 'Fail' }],
    ['in force, gone', [inForce('Fail')], 'gone', 'Fail', { policy: 'Ignore', relaxed: true }],
    ['relaxed, gone', [inForce('Ignore')], 'gone', 'Fail', { policy: 'Ignore', relaxed: true }],
    [
      'relaxed, by a leader before',
      [inForce('Ignore')],
      'justGone',
      'Fail',
      { policy: 'Ignore', relaxed: true },
    ],
    [
      'relaxed, there but not answering',
      [inForce('Ignore')],
      'unready',
      'Fail',
      { policy: 'Ignore', relaxed: true },
    ],
    ['relaxed, and back', [inForce('Ignore')], 'there', 'Fail', { policy: 'Fail' }],
    ['Ignore stays', [inForce('Ignore')], 'gone', 'Ignore', { policy: 'Ignore' }],
    ['Ignore is put right', [inForce('Fail')], 'gone', 'Ignore', { policy: 'Ignore' }],
    ['it moves, and the new place answers', [elsewhere], 'there', 'Fail', { policy: 'Fail' }],
    [
      'it moves, and the new place does not',
      [elsewhere],
      'unready',
      'Fail',
      { policy: 'Fail', url: 'https://old.example/mutate', waiting: true },
    ],
  ];
  for (const [what, actual, availability, policy, expected] of cases) {
    const decided = await decideWebhooks({
      wanted: [webhook('a', policy)],
      actual,
      bundle,
      availability: () => availabilities[availability],
      absenceMs: 30 * second,
      now,
    });
    const [first] = decided.webhooks;
    t.equal(first?.failurePolicy, expected.policy, what);
    t.equal(first?.clientConfig.url, expected.url, what);
    t.same(decided.waiting, expected.waiting === true ? ['a'] : [], what);
    t.same(decided.relaxed, expected.relaxed === true ? ['a'] : [], what);
    if (first) t.equal(first.clientConfig.caBundle, writeCaBundle(bundle), `${what}: its caBundle is true`);
  }

  const never = await decideWebhooks({
    wanted: [webhook('a', 'Fail')],
    actual: [inForce('Ignore')],
    bundle,
    availability: () => ({ ...availabilities.gone, absentMs: 1e9 }),
    absenceMs: 0,
    now,
  });
  t.equal(never.webhooks[0]?.failurePolicy, 'Fail', '0: never taken back');
});

t.test('whom the API server trusts', async (t) => {
  const [wanted, old, expired] = await Promise.all([
    authority(),
    authority(),
    authority(now - 5000, now - 1000),
  ]);
  const decide = (caBundle: string | undefined, availability: Availability) => {
    const plain = webhook('a', 'Fail');
    const clientConfig = { ...plain.clientConfig, ...(caBundle !== undefined && { caBundle }) };
    return decideWebhooks({
      wanted: [plain],
      actual: [{ ...plain, clientConfig }],
      bundle: [wanted],
      availability: () => availability,
      absenceMs: 0,
      now,
    });
  };
  const cases: [string, string | undefined, Availability, Certificate[]][] = [
    ['none yet', undefined, availabilities.there, [wanted]],
    ['garbage', 'Z2FyYmFnZQ==', availabilities.partly, [wanted]],
    ['the right one', writeCaBundle([wanted]), availabilities.partly, [wanted]],
    ['an old one that is in use', writeCaBundle([old]), availabilities.partly, [wanted, old]],
    [
      'an old one that is in use, and the right one',
      writeCaBundle([old, wanted]),
      availabilities.partly,
      [wanted, old],
    ],
    ['an old one that nobody needs', writeCaBundle([wanted, old]), availabilities.there, [wanted]],
    ['an old one, and nobody there', writeCaBundle([wanted, old]), availabilities.gone, [wanted, old]],
    ['an expired one', writeCaBundle([wanted, expired]), availabilities.partly, [wanted]],
  ];
  for (const [what, caBundle, availability, expected] of cases) {
    const decided = await decide(caBundle, availability);
    const [first] = decided.webhooks;
    t.same(
      readCaBundle(first?.clientConfig.caBundle)?.map(({ id }) => id),
      expected.map(({ id }) => id),
      what,
    );
    t.equal(decided.extra, expected.length > 1, what);
  }
});

t.test('several webhooks, each for itself', async (t) => {
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
    availability: ({ name }) => (name === 'c' ? availabilities.unready : availabilities.there),
    absenceMs: 0,
    now,
  });
  t.same(
    decided.webhooks.map(({ name }) => name),
    ['a', 'b'],
  );
  t.same(decided.waiting, ['c']);
  t.equal(decided.webhooks[1]?.clientConfig.url, 'https://b.example/', 'another path is no other place');
});
