import t, { type Test } from 'tap';
import { leafNames, readLeaf } from '../../../../src/controller/features/certificates/leaves.ts';
import { readAuthorities } from '../../../../src/certificates/authorities.ts';
import { paths } from '../../../../src/kube/api/paths.ts';
import {
  type LeaderOptions,
  type World,
  announced,
  createWorld,
  hour,
  minute,
  picture,
  rotationMs,
  setWebhookBundle,
  settled,
  times,
} from './world.ts';
import { like } from '../../../support/like.ts';
import { lead } from '../../leader.ts';
import { certificatesWith } from '../../../../src/controller/features/certificates/certificates.ts';
import type { Webhook } from '../../../../src/controller/state/webhooks-file.ts';
import { seriesOf } from '../../../support/captured.ts';
import { until } from '../../../support/until.ts';

/** Reconciles as often as the leader would. */
async function pass(world: World, lead: ReturnType<World['leader']>, ms: number): Promise<string> {
  const end = world.monotonic() + ms;
  for (;;) {
    await lead();
    const rest = end - world.monotonic();
    if (rest <= 0) return picture(world);
    world.advance(Math.min(times.settleMs, rest));
  }
}

/** Every certificate, with the reason why it was issued. */
const leavesWith = (reason: string): string[] => leafNames.map((name) => `${name} ${reason}`);

t.test('a new cluster gets a CA and certificates', async (t) => {
  const world = await createWorld(t);
  t.equal(picture(world), 'nothing');
  const lead = world.leader();
  const { wrote, found } = await lead();
  t.ok(wrote);
  t.ok(
    found.leaves.every(({ certificate }) => certificate),
    'it returns what is there in the end',
  );
  t.equal(picture(world), 'A signing: A/A A/A A/A A/A');
  t.strictSame(world.issued(), ['ca missing', ...leavesWith('missing')]);

  like(t, world.store.get('/api/v1/namespaces/archwright/secrets/archwright-agent-tls'), {
    type: 'kubernetes.io/tls',
    metadata: { labels: { 'app.kubernetes.io/managed-by': 'archwright-controller' } },
  });
  like(t, world.store.get('/api/v1/namespaces/archwright/secrets/archwright-ca'), { type: 'Opaque' });

  const writes = world.store.writes().length;
  t.notOk((await lead()).wrote, 'a second reconcile writes nothing');
  t.notOk((await world.leader()()).wrote, 'another leader writes nothing');
  t.equal(world.store.writes().length, writes);
});

t.test('the rotation of the CA, step by step', async (t) => {
  const world = await settled(t);
  const lead = world.leader();
  await pass(world, lead, (times.caMs * 2) / 3 - minute);
  t.equal(picture(world), 'A signing: A/A A/A A/A A/A', 'no change until two thirds of its life');
  t.ok(world.issued().every((each) => each.endsWith(' due')));
  const announcing = 'AB announcing+key: A/AB A/AB A/AB A/AB';
  t.equal(await pass(world, lead, 2 * minute), announcing, 'both are trusted');
  t.strictSame(world.issued(), ['ca due']);
  t.equal(await pass(world, lead, times.settleMs - 2 * minute), announcing);
  const signs = 'AB signing: B/AB B/AB B/AB B/AB';
  t.equal(await pass(world, lead, 3 * minute), signs, 'the new one signs, and the old key is gone');
  t.strictSame(world.issued(), leavesWith('authority'));
  t.equal(await pass(world, lead, times.settleMs - 4 * minute), signs);
  t.equal(await pass(world, lead, 5 * minute), 'B signing: B/B B/B B/B B/B', 'only the new one is trusted');
  t.strictSame(world.texts('ca')?.['previous.crt'], undefined);
  t.strictSame(world.texts('ca')?.['previous.key'], undefined);
});

t.test('each certificate is renewed after two thirds of its life', async (t) => {
  const world = await settled(t);
  const lead = world.leader();
  const before = world.texts('agent');
  world.advance((times.certificateMs * 2) / 3 - 2000);
  t.notOk((await lead()).wrote);
  world.advance(4000);
  t.ok((await lead()).wrote);
  t.strictSame(world.issued(), leavesWith('due'));
  t.not(world.texts('agent')?.['tls.key'], before?.['tls.key'], 'with a new key');
  t.equal(world.texts('agent')?.['ca.crt'], before?.['ca.crt']);
});

t.test('a new leader waits again, and a clock jump does not shorten the wait', async (t) => {
  const { world } = await announced(t);
  for (let count = 0; count < 5; count += 1) {
    world.advance(times.settleMs - 1000);
    // Each leader reconciles once.
    await world.leader()();
    t.match(picture(world), /^AB announcing\+key/);
  }
  const lead = world.leader();
  for (const ms of [0, hour, -hour]) {
    world.jump(ms);
    await lead();
    t.match(picture(world), /^AB announcing\+key/);
  }
  world.advance(times.settleMs);
  await lead();
  t.match(picture(world), /^AB signing/);
});

t.test('the rotation waits until caBundle has the new CA', async (t) => {
  const name = 'archwright';
  const world = await settled(t);
  const lead = world.leader({ webhookConfiguration: name });
  const old = world.texts('webhook')?.['ca.crt'];
  setWebhookBundle(world, name, old, undefined);
  world.advance(rotationMs);
  t.match(await pass(world, lead, 3 * times.settleMs), /^AB announcing\+key/, 'it waits for caBundle');
  const both = world.texts('webhook')?.['ca.crt'];
  setWebhookBundle(world, name, both, old);
  t.match(await pass(world, lead, 3 * times.settleMs), /^AB announcing\+key/, 'for each');
  setWebhookBundle(world, name, both, both);
  t.match(await pass(world, lead, times.settleMs - minute), /^AB announcing\+key/);
  t.match(await pass(world, lead, 2 * minute), /^AB signing/);

  world.advance((times.caMs * 2) / 3);
  const end = world.store.fault(/GET .*mutatingwebhookconfigurations/, { status: 403 });
  t.match(await pass(world, lead, 2 * times.settleMs), /^BC announcing\+key/, 'unreadable: it waits too');
  end();
  world.store.remove(paths.mutatingWebhookConfigurations(name));
  t.match(await pass(world, lead, times.settleMs + minute), /^BC signing/, 'nothing to wait for');
});

t.test(
  'the service CA of OpenShift issues the certificate of the webhook, and writes caBundle',
  async (t) => {
    const world = await createWorld(t);
    const lead = world.leader({ webhookConfiguration: 'archwright', certificates: 'serviceCa' });
    await lead();
    const isThere = leafNames.filter((name) => world.texts(name) !== undefined);
    t.strictSame(isThere, ['agent', 'webhook-client', 'controller-client']);
    setWebhookBundle(world, 'archwright', 'another CA');
    world.advance(rotationMs);
    await pass(world, lead, times.settleMs - minute);
    t.equal(world.texts('ca')?.['phase'], 'announcing');
    await pass(world, lead, 2 * minute);
    t.equal(world.texts('ca')?.['phase'], 'signing', 'the rotation does not wait for it');
  },
);

t.test('a bundle damaged during the announcement restarts the wait', async (t) => {
  const { world, lead } = await announced(t);
  const old = readAuthorities(world.texts('ca') ?? {}).previous[0]?.pem ?? '';
  world.advance(times.settleMs - minute);
  await lead();
  world.put('agent', { ...world.texts('agent'), 'ca.crt': old });
  await lead();
  t.match(picture(world), /^AB announcing\+key: A\/AB A\/AB A\/AB A\/AB/, 'the bundle is repaired');
  world.advance(2 * minute);
  await lead();
  t.match(picture(world), /^AB announcing\+key/);
  world.advance(times.settleMs);
  await lead();
  t.match(picture(world), /^AB signing/);
});

function start(t: Test, world: World, options: LeaderOptions = {}) {
  const ending = new AbortController();
  const context = world.context({ signal: ending.signal, ...options });
  const running = lead(certificatesWith(times), context);
  const end = async (): Promise<void> => {
    ending.abort(new Error('deposed'));
    await running;
  };
  t.teardown(end);
  const expiry = () => value('archwright_certificate_expires_in_seconds{certificate="ca"}');
  const value = async (series: string) => Number(await seriesOf(context.metrics, series));
  return { end, value, expiry };
}

const isComplete = (world: World, what: string): Promise<void> =>
  world.store.until(() => picture(world) === 'A signing: A/A A/A A/A A/A', what);

t.test('it issues certificates, repairs deleted ones, and stops on request', async (t) => {
  const world = await createWorld(t);
  const { end, value, expiry } = start(t, world);
  await isComplete(world, 'every Secret exists');
  await world.store.until(() => world.store.watches() === 5, 'every Secret is watched');
  for (const name of leafNames) {
    world.remove(name);
    await isComplete(world, `${name} exists again`);
  }
  t.equal(await value('archwright_certificates_issued_total{certificate="agent",reason="missing"}'), 2);
  t.equal(await value('archwright_certificates_issued_total{certificate="ca",reason="missing"}'), 1);
  await isComplete(world, 'at rest');
  // The first reconcile may still be running; it sets the metric at its end.
  await until(async () => !Number.isNaN(await expiry()), 'the metric of the CA');
  t.equal(await expiry(), times.caMs / 1000);
  world.advance(minute);
  t.equal(await expiry(), times.caMs / 1000 - 60);
  await end();
  await world.store.until(() => world.store.watches() === 0, 'watches end');
  t.ok(Number.isNaN(await expiry()), 'no value without leadership');
  t.notMatch(world.log.join(''), 'PRIVATE');
});

t.test('without any event, what is due is issued within ten minutes', async (t) => {
  const world = await settled(t);
  const before = readLeaf(world.texts('agent')).certificate?.from ?? 0;
  start(t, world, { shortened: (ms) => (ms <= 10 * minute ? 10 : hour) });
  // The watches of five Secrets cause six at most.
  await world.store.until(() => world.store.received(/^GET .*archwright-ca$/u).length > 12, 'many looks');
  world.advance((times.certificateMs * 2) / 3 + 1000);
  const isRenewed = (): boolean => (readLeaf(world.texts('agent')).certificate?.from ?? 0) > before;
  await world.store.until(isRenewed, 'the certificate is renewed');
});

t.test('the DNS names of the webhook come from the webhooks file', async (t) => {
  const world = await createWorld(t);
  let known: readonly Webhook[] | undefined;
  let changed = (): void => undefined;
  const close = (): Promise<void> => Promise.resolve();
  const onChange = (listener: () => void): void => void (changed = listener);
  const webhooks = { current: () => known, problem: () => undefined, onChange, close };
  const { end } = start(t, world, { webhooks });
  await world.store.until(
    () => world.texts('controller-client') !== undefined,
    'the other certificates need no names',
  );
  t.equal(world.texts('webhook'), undefined);
  known = [
    { name: 'a', clientConfig: { service: { namespace: 'ns', name: 'hook' } } },
    { name: 'b', clientConfig: { url: 'https://127.0.0.1/' } },
  ];
  changed();
  await world.store.until(() => world.texts('webhook') !== undefined, 'now they are known');
  await end();
  const { certificate } = readLeaf(world.texts('webhook'));
  const names = 'DNS:hook.ns.svc, DNS:hook.ns.svc.cluster.local, IP Address:127.0.0.1';
  t.equal(certificate?.x509.subjectAltName, names);
  t.notOk((await world.leader({ webhooks })()).wrote, 'they are the names that it should have');
});

t.test('with another issuer of certificates, it reads and writes nothing', async (t) => {
  const world = await createWorld(t);
  await lead(certificatesWith(), world.context({ configuration: { certificates: 'external' } }));
  t.equal(world.store.requests.length, 0);
});
