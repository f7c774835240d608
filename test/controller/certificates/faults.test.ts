/**
 * Model check: whatever interrupts a leader and whenever, everybody gets along with everybody at each moment, also those who still
 * use what stood in a Secret up to `settleMs` ago; and in the end all is as it should be.
 */
import t from 'tap';
import { sized } from '../../support/exhaustive.ts';
import { leafNames, readLeaf } from '../../../src/controller/certificates/leaves.ts';
import { isIssuedBy, type Certificate } from '../../../src/controller/certificates/pem.ts';
import { createWorld, Killed, minute, picture, times, type World } from './world.ts';

type Leaf = ReturnType<typeof readLeaf>;
interface Version {
  readonly leaf: Leaf;
  /** While it stood in the Secret, monotonic; `to` is open for the last one. */
  readonly from: number;
  to: number;
}

/** Whom each certificate is shown to: to those who hold the bundle of these Secrets. */
const shownTo = {
  // The API server: caBundle is the bundle of the webhook's own Secret.
  webhook: ['webhook'],
  agent: ['webhook-client', 'controller-client'],
  'webhook-client': ['agent'],
  'controller-client': ['agent'],
} as const;

const verified = new Map<string, boolean>();

function trusts(bundle: readonly Certificate[], certificate: Certificate): boolean {
  return bundle.some((authority) => {
    const key = `${authority.id} ${certificate.id}`;
    const known = verified.get(key) ?? isIssuedBy(certificate, authority);
    verified.set(key, known);
    return known;
  });
}

/** Takes down every version of every Secret that there ever was. */
function createHistory(world: World) {
  const versions = new Map(leafNames.map((name) => [name, [] as Version[]]));
  let seen = '';
  function look(): void {
    const now = JSON.stringify([world.texts('ca'), ...leafNames.map((name) => world.texts(name))]);
    if (now === seen) return;
    seen = now;
    // Authorities get their letters in the order in which they are seen.
    picture(world);
    for (const [name, list] of versions) {
      const texts = world.texts(name);
      const last = list.at(-1);
      if (texts === undefined || JSON.stringify(last?.leaf.texts) === JSON.stringify(texts)) continue;
      if (last) last.to = world.monotonic();
      list.push({ leaf: readLeaf(texts), from: world.monotonic(), to: Number.POSITIVE_INFINITY });
    }
  }
  /** Pairs that can meet and do not get along. */
  function quarrels(lagMs: number): string[] {
    const found: string[] = [];
    for (const [name, certificates] of versions)
      for (const other of shownTo[name])
        for (const [index, shown] of certificates.entries())
          for (const [at, held] of versions.get(other)?.entries() ?? []) {
            const meet = shown.from < held.to + lagMs && held.from < shown.to + lagMs;
            const { certificate } = shown.leaf;
            if (meet && certificate !== undefined && !trusts(held.leaf.bundle ?? [], certificate))
              found.push(`${name} ${index} is not trusted by ${other} ${at}`);
          }
    return found;
  }
  return { look, quarrels, count: () => [...versions.values()].map((list) => list.length) };
}

/** Leaders that follow each other: a new one after each that was killed. */
async function lead(
  world: World,
  ms: number,
  options: { readonly kill?: (step: number) => boolean; readonly look: () => void },
): Promise<number> {
  let steps = 0;
  const start = (): ReturnType<World['leader']> =>
    world.leader({
      step: () => {
        options.look();
        const step = steps++;
        if (options.kill?.(step) === true) throw new Killed('killed');
      },
    });
  let leader = start();
  const end = world.monotonic() + ms;
  while (world.monotonic() < end) {
    let nextMs = minute;
    try {
      ({ nextMs } = await leader());
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      leader = start();
      nextMs = 1000;
    }
    options.look();
    world.advance(Math.min(nextMs, end - world.monotonic()));
  }
  options.look();
  return steps;
}

const lagMs = times.settleMs - 2000;

t.test('two authorities one after the other, undisturbed', async (t) => {
  const world = await createWorld(t);
  const history = createHistory(world);
  const steps = await lead(world, 1.6 * times.caMs, { look: history.look });
  t.same(history.quarrels(lagMs), []);
  t.match(picture(world), /^C signing: C\/C C\/C C\/C C\/C$/);
  t.ok(steps > 40, `${steps} steps`);
  t.ok(history.count().every((count) => count > 10));

  // The model is able to find something: a wait that is too short for this lag.
  t.not(history.quarrels(3 * times.settleMs).length, 0);
});

t.test('a leader is killed after each step of a rotation, or after some of them', async (t) => {
  const settled = 4 * times.settleMs;
  const rotation = (times.caMs * 2) / 3 - minute;
  let total = Number.POSITIVE_INFINITY;
  for (let victim = 0; victim < total; victim += sized(5, 1)) {
    const world = await createWorld(t);
    const history = createHistory(world);
    const first = await lead(world, minute, { look: history.look, kill: (step) => step === victim });
    world.advance(rotation - minute);
    const rest = await lead(world, settled, {
      look: history.look,
      kill: (step) => step === victim - first,
    });
    total = Math.min(total, first + rest);
    t.same(history.quarrels(lagMs), [], `killed at step ${victim}`);
    t.equal(picture(world), 'B signing: B/B B/B B/B B/B', `killed at step ${victim}`);
  }
  t.ok(total >= 20, `${total} steps`);
});

t.test('writes that fail, each in its turn', async (t) => {
  const statuses = [409, 403, 422, 500, 429] as const;
  const world = await createWorld(t);
  const history = createHistory(world);
  await lead(world, minute, { look: history.look });
  world.advance((times.caMs * 2) / 3 - 2 * minute);
  let writes = 0;
  const end = world.store.fault((request) => request.verb === 'PATCH' && writes++ % 2 === 0, { status: 409 });
  const others = statuses.map((status, index) =>
    world.store.fault((request) => request.verb === 'PATCH' && writes++ % (5 + index) === 0, { status }),
  );
  const leader = world.leader({ step: history.look });
  for (let count = 0; count < 200; count += 1) {
    await leader().catch(() => undefined);
    history.look();
    world.advance(minute);
  }
  end();
  for (const each of others) each();
  t.same(history.quarrels(lagMs), []);
  await lead(world, 4 * times.settleMs, { look: history.look, kill: () => false }).catch(() => 0);
  t.same(history.quarrels(lagMs), []);
  t.match(picture(world), /signing: (.)\/\1 \1\/\1 \1\/\1 \1\/\1$/);
});

t.test('an answer that is lost after the write', async (t) => {
  const world = await createWorld(t);
  const history = createHistory(world);
  world.store.fault(/^PATCH/, { lost: true, times: 3 });
  const leader = world.leader({ step: history.look });
  for (let count = 0; count < 8; count += 1) await leader().catch(() => history.look());
  t.equal(picture(world), 'A signing: A/A A/A A/A A/A');
  t.same(history.quarrels(lagMs), []);
});

t.test('one Secret that may not be written keeps none of the others', async (t) => {
  const world = await createWorld(t);
  world.store.fault(/archwright-webhook-tls$/, { status: 403, message: 'not yours' });
  await t.rejects(world.leader()(), /403/);
  // Reading it is forbidden too: without knowing, nothing is decided.
  t.equal(world.texts('agent'), undefined);

  const other = await createWorld(t);
  other.store.fault(/^PATCH .*archwright-webhook-tls$/, { status: 403, message: 'not yours' });
  await t.rejects(other.leader()(), /not yours/);
  t.equal(picture(other), 'A signing: ?/ A/A A/A A/A');
});

t.test('two leaders at once', async (t) => {
  const world = await createWorld(t);
  await Promise.all([world.leader()(), world.leader()(), world.leader()()]);
  await world.leader()();
  t.equal(picture(world), 'A signing: A/A A/A A/A A/A', 'agree on one authority');
});

t.test('a Secret that another leader makes between the look and the creation stays', async (t) => {
  const world = await createWorld(t);
  let theirs: Readonly<Record<string, string>> | undefined;
  world.store.fault(/^PATCH .*archwright-agent-tls$/, {
    times: 1,
    before: async () => {
      await world.leader()();
      theirs = world.texts('agent');
    },
  });
  await world.leader()();
  t.match(theirs, { 'tls.key': /PRIVATE KEY/ });
  t.same(world.texts('agent'), theirs);
  t.equal(world.issued().filter((each) => each === 'agent missing').length, 1);
  t.equal(picture(world), 'A signing: A/A A/A A/A A/A');
});
