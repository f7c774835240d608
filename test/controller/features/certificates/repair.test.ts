/** Repairs after foreign writes and clock jumps, without breaking a connection that could go on. */
import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { backdateMs, issueAuthority, issueLeaf, type Pair } from '../../../../src/certificates/issue.ts';
import { leafNames, readLeaf } from '../../../../src/controller/features/certificates/leaves.ts';
import { isIssuedBy, readCertificates } from '../../../../src/certificates/pem.ts';
import { reveal, secret } from '../../../../src/telemetry/secret.ts';
import { isExhaustive } from '../../../support/exhaustive.ts';
import {
  hour,
  minute,
  picture,
  times,
  setWebhookBundle,
  webhookNames,
  settled,
  announced,
  type World,
} from './world.ts';

const whole = 'A signing: A/A A/A A/A A/A';

function life(world: World, ms: number) {
  return { from: world.now() - backdateMs, to: world.now() + ms };
}

const pairTexts = ({ certificate, key }: Pair) => ({ 'tls.crt': certificate.pem, 'tls.key': reveal(key) });
const garbage = 'not a certificate';
const brokenPem = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

t.test('a certificate that another writer changed is repaired', async (t) => {
  const world = await settled(t);
  const stranger = await issueAuthority(life(world, hour));
  const own = { commonName: 'archwright-agent', names: ['archwright-agent'], usage: 'server' } as const;
  const foreign = await issueLeaf(stranger, own, life(world, hour));
  const good = world.texts('agent') ?? {};
  const other = world.texts('webhook') ?? {};
  const foreignPair = pairTexts(foreign);
  const strangerCa = stranger.certificate.pem;
  const { 'tls.crt': goodPem = '', 'ca.crt': goodCa = '' } = good;
  const unreadable = ['agent unreadable'];
  const cases: [string, Record<string, string> | undefined, string[]][] = [
    ['deleted', undefined, ['agent missing']],
    ['emptied', {}, unreadable],
    ['garbage', { ...good, 'tls.crt': garbage }, unreadable],
    ['a broken certificate', { ...good, 'tls.crt': brokenPem }, unreadable],
    [
      'a broken certificate after a good one',
      { ...good, 'tls.crt': `${goodPem}-----BEGIN CERT` },
      unreadable,
    ],
    ['another key', { ...good, 'tls.key': other['tls.key'] ?? '' }, unreadable],
    ['no key', { 'tls.crt': goodPem, 'ca.crt': goodCa }, unreadable],
    ['signed by a foreign authority', { ...good, ...foreignPair }, ['agent foreign']],
    [
      'signed by a foreign authority in the bundle',
      { ...foreignPair, 'ca.crt': strangerCa },
      ['agent foreign'],
    ],
    ["the webhook's", { ...other }, ['agent names']],
    ['no authorities', { ...good, 'ca.crt': '' }, []],
    ['other authorities', { ...good, 'ca.crt': strangerCa }, []],
    ['one authority too many', { ...good, 'ca.crt': goodCa + strangerCa }, []],
    ['something besides', { ...good, note: 'mine' }, []],
  ];
  for (const [what, texts, issued] of cases) {
    if (texts === undefined) world.remove('agent');
    else world.put('agent', texts);
    await world.leader()();
    t.strictSame(world.issued(), issued, what);
    t.equal(picture(world), whole, what);
    if (texts?.['note']) t.equal(world.texts('agent')?.['note'], 'mine', 'a foreign key stays');
    if (texts && issued.length === 0) t.equal(world.texts('agent')?.['tls.crt'], texts['tls.crt'], what);
  }
});

t.test('a certificate whose names differ from the settings is replaced', async (t) => {
  const world = await settled(t);
  const ca = world.texts('ca') ?? {};
  const [certificate] = readCertificates(ca['ca.crt']) ?? [];
  if (certificate === undefined) throw new Error('no authority');
  const signer = { certificate, key: secret(ca['ca.key'] ?? '') };
  const server = { commonName: 'archwright-webhook', names: webhookNames, usage: 'server' } as const;
  const subjects = [
    { ...server, names: [...webhookNames, 'more.example'] },
    { ...server, names: webhookNames.slice(1) },
    { ...server, names: ['archwright-webhook.archwright.svc', '127.0.0.2'] },
    { ...server, names: ['*.archwright.svc', '127.0.0.1'] },
    { ...server, usage: 'client' as const },
    { ...server, commonName: 'archwright-controller' },
  ];
  for (const subject of subjects) {
    const leaf = await issueLeaf(signer, subject, life(world, times.certificateMs));
    world.put('webhook', { ...pairTexts(leaf), 'ca.crt': ca['ca.crt'] ?? '' });
    await world.leader()();
    t.strictSame(world.issued(), ['webhook names'], JSON.stringify(subject));
  }
});

t.test('after the loss of the CA Secret, its certificates are still trusted', async (t) => {
  const good = (await settled(t)).texts('ca') ?? {};
  t.ok(good['ca.key']);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const otherCurve = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const cases: [string, (texts: Record<string, string>) => Record<string, string> | undefined, string][] = [
    ['deleted', () => undefined, 'ca missing'],
    ['emptied', () => ({}), 'ca missing'],
    ['garbage', (texts) => ({ ...texts, 'ca.crt': garbage }), 'ca unreadable'],
    ['without its key', (texts) => ({ ...texts, 'ca.key': '' }), 'ca unreadable'],
    ['with another key', (texts) => ({ ...texts, 'ca.key': good['ca.key'] ?? '' }), 'ca unreadable'],
    ['with a key on another curve', (texts) => ({ ...texts, 'ca.key': otherCurve }), 'ca unreadable'],
  ];
  for (const [what, change, issued] of cases) {
    const world = await settled(t);
    // A bundle may have an authority that did not issue the certificate beside it.
    const stranger = await issueAuthority(life(world, hour));
    const { 'ca.crt': bundle = '' } = world.texts('agent') ?? {};
    world.put('agent', { ...world.texts('agent'), 'ca.crt': bundle + stranger.certificate.pem });
    const changed = change({ ...world.texts('ca') });
    if (changed === undefined) world.remove('ca');
    else world.put('ca', changed);
    const lead = world.leader();
    await lead();
    t.strictSame(world.issued(), [issued], what);
    t.equal(picture(world), 'AB announcing: A/AB A/AB A/AB A/AB', `${what}: the old CA is still trusted`);

    world.remove('agent');
    await lead();
    t.equal(picture(world), 'AB announcing: A/AB B/AB A/AB A/AB', what);
    world.advance(times.settleMs);
    await lead();
    t.equal(picture(world), 'AB signing: B/AB B/AB B/AB B/AB', what);
    world.advance(times.settleMs);
    await lead();
    t.equal(picture(world), 'B signing: B/B B/B B/B B/B', what);
  }
});

t.test(
  'until a new CA is trusted everywhere, certificates of a lost CA stay as long as they can',
  async (t) => {
    const world = await settled(t);
    const lead = world.leader({ webhookConfiguration: 'archwright' });
    setWebhookBundle(world, 'archwright', world.texts('webhook')?.['ca.crt']);
    world.remove('ca');
    await lead();
    world.issued();
    // Due after two thirds of a life; five sixths are over before they are replaced.
    world.advance((times.certificateMs * 5) / 6 - minute);
    await lead();
    t.strictSame(world.issued(), []);
    world.advance(2 * minute);
    await lead();
    t.strictSame(
      world.issued(),
      leafNames.map((name) => `${name} due`),
    );
  },
);

t.test('the CA Secret is lost during a rotation', async (t) => {
  const { world, lead } = await announced(t);
  t.equal(picture(world), 'AB announcing+key: A/AB A/AB A/AB A/AB');
  world.put('ca', { ...world.texts('ca'), 'ca.key': garbage });
  await lead();
  const signsOn = 'BAC announcing+key: A/ABC A/ABC A/ABC A/ABC';
  t.equal(picture(world), signsOn, 'the old CA still signs, beside the next one');
  world.advance(times.settleMs);
  await lead();
  world.advance(times.settleMs);
  await lead();
  t.equal(picture(world), 'C signing: C/C C/C C/C C/C');
});

t.test('if all Secrets are deleted at once, all of them are issued anew', async (t) => {
  const world = await settled(t);
  for (const name of [...leafNames, 'ca'] as const) world.remove(name);
  await world.leader()();
  t.equal(picture(world), 'B signing: B/B B/B B/B B/B');
});

/** `npm test` tries two of them. */
const jumps = (
  [
    ['an hour ahead', hour],
    ['past the certificates', times.certificateMs + minute],
    ['past the life of the authority', times.caMs + hour],
    ['past twice its life', 2 * times.caMs],
    ['a year ahead', 365 * 24 * hour],
    ['back by a minute', -minute],
    ['back by more than the tolerance', -hour],
    ['back by a year', -365 * 24 * hour],
  ] as [string, number][]
).filter((_, index) => isExhaustive || index % 4 === 2);

t.test('whichever clocks jump, machines with correct clocks can still connect', async (t) => {
  for (const [what, ms] of jumps) {
    for (const clocks of [['jump', 'jumpOwn'], ['jump'], ['jumpOwn']] as const) {
      const about = `${clocks.join()} ${what}`;
      const world = await settled(t);
      const old = readLeaf(world.texts('agent')).bundle ?? [];
      const right = world.now();
      const lead = world.leader();
      for (const clock of clocks) world[clock](ms);
      await lead();
      t.notOk((await lead()).wrote, `${about}: it settles`);
      for (const name of leafNames) {
        const { certificate } = readLeaf(world.texts(name));
        if (certificate === undefined) throw new Error('no certificate');
        if (clocks.length === 1) {
          const isTrusted = old.some((each) => isIssuedBy(certificate, each));
          t.ok(isTrusted, `${about}: the old bundle trusts ${name}`);
          const isValid = certificate.from <= right || ms > times.certificateMs;
          t.ok(isValid, `${about}: ${name} is valid by the correct clock`);
        } else {
          const isValid = certificate.from <= world.now() && world.now() < certificate.to;
          t.ok(isValid, `${about}: ${name} is valid`);
        }
      }
      for (const clock of clocks) world[clock](-ms);
      for (let count = 0; count < 4; count += 1) {
        await lead();
        world.advance(times.settleMs);
      }
      await lead();
      t.match(picture(world), /^(.) signing: \1\/\1 \1\/\1 \1\/\1 \1\/\1$/, `${about}, and back`);
    }
  }
});

t.test('certificates that live longer than the settings allow are replaced', async (t) => {
  const world = await settled(t);
  const long = await issueAuthority(life(world, 10 * times.caMs));
  const subject = { commonName: 'archwright-webhook', names: [], usage: 'client' } as const;
  const leaf = await issueLeaf(long, subject, life(world, 9 * times.caMs));
  world.put('ca', { 'ca.crt': long.certificate.pem, 'ca.key': reveal(long.key) });
  world.put('webhook-client', { ...pairTexts(leaf), 'ca.crt': long.certificate.pem });
  await world.leader()();
  t.ok(world.issued().includes('ca due'));
  t.match(picture(world), /announcing\+key/);
});
