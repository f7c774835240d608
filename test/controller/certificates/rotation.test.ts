import t from 'tap';
import { createWorld, hour, minute, picture, setWebhookBundle, times, type World } from './world.ts';

/** Passes as often as the leader would wake. */
async function pass(world: World, lead: ReturnType<World['leader']>, ms: number): Promise<string> {
  const end = world.monotonic() + ms;
  for (;;) {
    const { nextMs } = await lead();
    const rest = end - world.monotonic();
    if (rest <= 0) return picture(world);
    world.advance(Math.min(nextMs, rest));
  }
}

t.test('a new cluster gets its authority and its certificates', async (t) => {
  const world = await createWorld(t);
  t.equal(picture(world), 'nothing');
  const lead = world.leader();
  const { wrote, nextMs } = await lead();
  t.ok(wrote);
  t.equal(picture(world), 'A signing: A/A A/A A/A A/A');
  t.same(world.issued(), [
    'ca missing',
    'webhook missing',
    'agent missing',
    'webhook-client missing',
    'controller-client missing',
  ]);
  t.equal(nextMs, (times.certificateMs * 2) / 3, 'the next look is when the first is due');

  const secret = world.store.get('/api/v1/namespaces/archwright/secrets/archwright-agent-tls') as unknown;
  t.match(secret, {
    type: 'kubernetes.io/tls',
    metadata: { labels: { 'app.kubernetes.io/managed-by': 'archwright-controller' } },
  });
  t.match(world.store.get('/api/v1/namespaces/archwright/secrets/archwright-ca'), { type: 'Opaque' });

  const writes = world.store.writes().length;
  t.notOk((await lead()).wrote, 'a second pass has nothing to do');
  t.notOk((await world.leader()()).wrote, 'nor has another leader');
  t.equal(world.store.writes().length, writes);
});

t.test('an authority from its announcement to its end', async (t) => {
  const world = await createWorld(t);
  const lead = world.leader();
  await lead();
  world.issued();
  await pass(world, lead, (times.caMs * 2) / 3 - minute);
  t.equal(picture(world), 'A signing: A/A A/A A/A A/A', 'the same until two thirds of its life');
  t.ok(world.issued().every((each) => each.endsWith(' due')));
  t.equal(
    await pass(world, lead, 2 * minute),
    'AB announcing+key: A/AB A/AB A/AB A/AB',
    'the new one is known',
  );
  t.same(world.issued(), ['ca due']);
  t.equal(await pass(world, lead, times.settleMs - 2 * minute), 'AB announcing+key: A/AB A/AB A/AB A/AB');
  t.equal(
    await pass(world, lead, 3 * minute),
    'AB signing: B/AB B/AB B/AB B/AB',
    'then it signs, and the old key is gone',
  );
  t.same(world.issued(), [
    'webhook authority',
    'agent authority',
    'webhook-client authority',
    'controller-client authority',
  ]);
  t.equal(await pass(world, lead, times.settleMs - 4 * minute), 'AB signing: B/AB B/AB B/AB B/AB');
  t.equal(
    await pass(world, lead, 5 * minute),
    'B signing: B/B B/B B/B B/B',
    'then the old one is not trusted any more',
  );
  t.same(world.texts('ca')?.['previous.crt'], undefined);
  t.same(world.texts('ca')?.['previous.key'], undefined);
});

t.test('a certificate is renewed after two thirds of its life, by itself', async (t) => {
  const world = await createWorld(t);
  const lead = world.leader();
  await lead();
  world.issued();
  const before = world.texts('agent');
  world.advance((times.certificateMs * 2) / 3 - 2000);
  t.notOk((await lead()).wrote);
  world.advance(4000);
  await lead();
  t.same(world.issued(), ['webhook due', 'agent due', 'webhook-client due', 'controller-client due']);
  t.not(world.texts('agent')?.['tls.key'], before?.['tls.key'], 'with a new key');
  t.equal(world.texts('agent')?.['ca.crt'], before?.['ca.crt']);
});

t.test('a new leader waits as long as the one before would have', async (t) => {
  const world = await createWorld(t);
  await world.leader()();
  world.advance((times.caMs * 2) / 3 + 1000);
  await world.leader()();
  for (let count = 0; count < 5; count += 1) {
    world.advance(times.settleMs - 1000);
    // Each of them looks once and is gone.
    await world.leader()();
    t.match(picture(world), /^AB announcing\+key/);
  }
  const lead = world.leader();
  await lead();
  world.advance(times.settleMs);
  await lead();
  t.match(picture(world), /^AB signing/);
});

t.test('a clock that jumps does not shorten the wait', async (t) => {
  const world = await createWorld(t);
  const lead = world.leader();
  await lead();
  world.advance((times.caMs * 2) / 3 + 1000);
  await lead();
  t.match(picture(world), /^AB announcing\+key/);
  world.jump(hour);
  await lead();
  t.match(picture(world), /^AB announcing\+key/);
  world.jump(-hour);
  await lead();
  t.match(picture(world), /^AB announcing\+key/);
});

t.test('caBundle counts as a bundle', async (t) => {
  const world = await createWorld(t);
  const name = 'archwright';
  const lead = world.leader({ webhookConfiguration: name });
  await lead();
  const old = world.texts('webhook')?.['ca.crt'];
  setWebhookBundle(world, name, old, undefined);
  world.advance((times.caMs * 2) / 3 + 1000);
  t.match(await pass(world, lead, 3 * times.settleMs), /^AB announcing\+key/, 'it waits for caBundle');
  const both = world.texts('webhook')?.['ca.crt'];
  setWebhookBundle(world, name, both, old);
  t.match(await pass(world, lead, 3 * times.settleMs), /^AB announcing\+key/, 'for each');
  setWebhookBundle(world, name, both, both);
  t.match(await pass(world, lead, times.settleMs - minute), /^AB announcing\+key/);
  t.match(await pass(world, lead, 2 * minute), /^AB signing/);

  await t.test(
    'a configuration that cannot be read holds it too, one that is not there does not',
    async (t) => {
      world.advance((times.caMs * 2) / 3);
      const end = world.store.fault(/GET .*mutatingwebhookconfigurations/, { status: 403 });
      t.match(await pass(world, lead, 2 * times.settleMs), /^BC announcing\+key/);
      end();
      world.store.remove(`/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${name}`);
      t.match(await pass(world, lead, times.settleMs + minute), /^BC signing/);
    },
  );
});

t.test('a bundle that is damaged while the new authority is announced starts the wait anew', async (t) => {
  const world = await createWorld(t);
  const lead = world.leader();
  await lead();
  const old = world.texts('agent')?.['ca.crt'] ?? '';
  world.advance((times.caMs * 2) / 3 + 1000);
  await lead();
  world.advance(times.settleMs - minute);
  await lead();
  world.put('agent', { ...world.texts('agent'), 'ca.crt': old });
  await lead();
  t.match(picture(world), /^AB announcing\+key: A\/AB A\/AB A\/AB A\/AB/, 'it is put right');
  world.advance(2 * minute);
  await lead();
  t.match(picture(world), /^AB announcing\+key/);
  world.advance(times.settleMs);
  await lead();
  t.match(picture(world), /^AB signing/);
});
