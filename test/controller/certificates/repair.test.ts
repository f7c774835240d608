/** What others do to the Secrets, and what clocks do: it is put right, and nobody is cut off who need not be. */
import { generateKeyPairSync } from 'node:crypto';
import t, { type Test } from 'tap';
import {
  backdateMs,
  issueAuthority,
  issueLeaf,
  type Pair,
} from '../../../src/controller/certificates/issue.ts';
import { leafNames, readLeaf } from '../../../src/controller/certificates/leaves.ts';
import { isIssuedBy, readCertificates } from '../../../src/controller/certificates/pem.ts';
import { reveal, secret } from '../../../src/telemetry/secret.ts';
import { isExhaustive } from '../../support/exhaustive.ts';
import { hour, minute, picture, times, webhookNames, type World, settled, announced } from './world.ts';

const whole = 'A signing: A/A A/A A/A A/A';

function life(world: World, ms: number) {
  return { from: world.now() - backdateMs, to: world.now() + ms };
}

const pairTexts = ({ certificate, key }: Pair) => ({ 'tls.crt': certificate.pem, 'tls.key': reveal(key) });
const garbage = 'this is not it';
const brokenPem = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

t.test('a leaf that another writer changed', async (t) => {
  const world = await settled(t);
  const stranger = await issueAuthority(life(world, hour));
  const own = { commonName: 'archwright-agent', names: ['archwright-agent'], usage: 'server' } as const;
  const foreign = await issueLeaf(stranger, own, life(world, hour));
  const good = world.texts('agent') ?? {};
  const other = world.texts('webhook') ?? {};
  const foreignPair = pairTexts(foreign);
  const cases: [string, Record<string, string> | undefined, string[]][] = [
    ['deleted', undefined, ['agent missing']],
    ['emptied', {}, ['agent unreadable']],
    ['garbage', { ...good, 'tls.crt': garbage }, ['agent unreadable']],
    ['a broken certificate', { ...good, 'tls.crt': brokenPem }, ['agent unreadable']],
    [
      'a broken one behind',
      { ...good, 'tls.crt': `${good['tls.crt'] ?? ''}-----BEGIN CERT` },
      ['agent unreadable'],
    ],
    ['another key', { ...good, 'tls.key': other['tls.key'] ?? '' }, ['agent unreadable']],
    ['no key', { 'tls.crt': good['tls.crt'] ?? '', 'ca.crt': good['ca.crt'] ?? '' }, ['agent unreadable']],
    ['of another authority', { ...good, ...foreignPair }, ['agent foreign']],
    ['of another one, with it', { ...foreignPair, 'ca.crt': stranger.certificate.pem }, ['agent foreign']],
    ["the webhook's", { ...other }, ['agent names']],
    ['no authorities', { ...good, 'ca.crt': '' }, []],
    ['other authorities', { ...good, 'ca.crt': stranger.certificate.pem }, []],
    ['one authority too many', { ...good, 'ca.crt': (good['ca.crt'] ?? '') + stranger.certificate.pem }, []],
    ['something besides', { ...good, note: 'mine' }, []],
  ];
  for (const [what, texts, issued] of cases) {
    const before = texts === undefined ? undefined : { ...texts };
    if (texts === undefined) world.remove('agent');
    else world.put('agent', texts);
    await world.leader()();
    t.same(world.issued(), issued, what);
    t.equal(picture(world), whole, what);
    if (before?.['note'] !== undefined)
      t.equal(world.texts('agent')?.['note'], 'mine', 'what is not ours stays');
    if (issued.length === 0 && before) t.equal(world.texts('agent')?.['tls.crt'], before['tls.crt'], what);
  }
});

t.test('names that are not those of the settings', async (t) => {
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
    t.same(world.issued(), ['webhook names'], JSON.stringify(subject));
  }
});

t.test('the Secret of the CA is lost: what it signed goes on being trusted', async (t) => {
  const good = (await settled(t)).texts('ca') ?? {};
  t.ok(good['ca.key']);
  const cases: [string, (texts: Record<string, string>) => Record<string, string> | undefined, string][] = [
    ['deleted', () => undefined, 'ca missing'],
    ['emptied', () => ({}), 'ca missing'],
    ['garbage', (texts) => ({ ...texts, 'ca.crt': garbage }), 'ca unreadable'],
    ['without its key', (texts) => ({ ...texts, 'ca.key': '' }), 'ca unreadable'],
    ['with another key', (texts) => ({ ...texts, 'ca.key': good['ca.key'] ?? '' }), 'ca unreadable'],
  ];
  for (const [what, change, issued] of cases) {
    const world = await settled(t);
    const changed = change({ ...world.texts('ca') });
    if (changed === undefined) world.remove('ca');
    else world.put('ca', changed);
    const lead = world.leader();
    await lead();
    t.same(world.issued(), [issued], what);
    t.equal(picture(world), 'AB announcing: A/AB A/AB A/AB A/AB', `${what}: nobody is cut off`);

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

t.test('lost in the middle of a rotation', async (t) => {
  const { world, lead } = await announced(t);
  t.equal(picture(world), 'AB announcing+key: A/AB A/AB A/AB A/AB');
  world.put('ca', { ...world.texts('ca'), 'ca.key': garbage });
  await lead();
  const signsOn = 'BAC announcing+key: A/ABC A/ABC A/ABC A/ABC';
  t.equal(picture(world), signsOn, 'the old one goes on signing beside the next');
  world.advance(times.settleMs);
  await lead();
  world.advance(times.settleMs);
  await lead();
  t.equal(picture(world), 'C signing: C/C C/C C/C C/C');
});

t.test('everything is deleted at once: all is new', async (t) => {
  const world = await settled(t);
  for (const name of [...leafNames, 'ca'] as const) world.remove(name);
  await world.leader()();
  t.equal(picture(world), 'B signing: B/B B/B B/B B/B');
});

/** Every second one in each run. */
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
).filter((_, index) => isExhaustive || index % 2 === 1);

async function comesToRest(t: Test, world: World, lead: () => Promise<unknown>, what: string): Promise<void> {
  for (let count = 0; count < 4; count += 1) {
    world.advance(times.settleMs);
    await lead();
  }
  t.match(picture(world), /^(.) signing: \1\/\1 \1\/\1 \1\/\1 \1\/\1$/, `${what}, and back`);
}

t.test('clocks that jump together', async (t) => {
  for (const [what, ms] of jumps) {
    const world = await settled(t);
    const lead = world.leader();
    for (const by of [ms, -ms]) {
      world.jump(by);
      world.jumpOwn(by);
      await lead();
      const { wrote, nextMs } = await lead();
      t.notOk(wrote, `${what}: it comes to rest`);
      t.ok(nextMs > 0);
      for (const name of leafNames) {
        const { certificate } = readLeaf(world.texts(name));
        const isValid = certificate && certificate.from <= world.now() && world.now() < certificate.to;
        t.ok(isValid, `${what}: ${name} is valid`);
      }
    }
    await comesToRest(t, world, lead, what);
  }
});

t.test('one clock that jumps breaks no connection between right clocks', async (t) => {
  for (const [what, ms] of jumps) {
    for (const whose of ['jump', 'jumpOwn'] as const) {
      const world = await settled(t);
      const old = readLeaf(world.texts('agent')).bundle ?? [];
      const right = world.now();
      world[whose](ms);
      const lead = world.leader();
      await lead();
      t.notOk((await lead()).wrote, `${whose} ${what}: it comes to rest`);
      for (const name of leafNames) {
        const { certificate } = readLeaf(world.texts(name));
        if (certificate === undefined) throw new Error('no certificate');
        const isTrusted = old.some((each) => isIssuedBy(certificate, each));
        t.ok(isTrusted, `${whose} ${what}: ${name} is trusted by who has the old bundle`);
        t.ok(
          certificate.from <= right || ms > times.certificateMs,
          `${whose} ${what}: ${name} is valid by the right clock`,
        );
      }
      world[whose](-ms);
      await comesToRest(t, world, lead, `${whose} ${what}`);
    }
  }
});

t.test('a life that was set shorter, or longer, holds from the next look on', async (t) => {
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

t.test('a key of the CA that is no P-256 key is none', async (t) => {
  const world = await settled(t);
  const { privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-384',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  world.put('ca', { ...world.texts('ca'), 'ca.key': privateKey });
  await world.leader()();
  t.same(world.issued(), ['ca unreadable']);
});
