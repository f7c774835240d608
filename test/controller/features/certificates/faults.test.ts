/**
 * Model check: whatever interrupts a leader, and whenever, all parts trust each other at each moment. This
 * includes parts that still use the content that a Secret had up to `settleMs` ago. In the end, the state is
 * correct.
 */
import t from 'tap';
import { sized } from '../../../support/exhaustive.ts';
import { leafNames, readLeaf } from '../../../../src/controller/features/certificates/leaves.ts';
import { isIssuedBy, type Certificate } from '../../../../src/certificates/pem.ts';
import { createWorld, Killed, minute, picture, times, type World } from './world.ts';
import { like } from '../../../support/like.ts';

type Leaf = ReturnType<typeof readLeaf>;
interface Version {
  readonly leaf: Leaf;
  /** When the Secret had this content, monotonic. `to` is `Infinity` for the current content. */
  readonly from: number;
  to: number;
}

/** The peers of each certificate verify it with the bundles in these Secrets. */
const shownTo = {
  // The API server, because caBundle is the bundle in the webhook's own Secret.
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

/** Records every version of every Secret. */
function createHistory(world: World) {
  const versions = new Map(leafNames.map((name) => [name, [] as Version[]]));
  let seen = '';
  function look(): void {
    const now = JSON.stringify([world.texts('ca'), ...leafNames.map((name) => world.texts(name))]);
    if (now === seen) return;
    seen = now;
    // `picture` names authorities by letters, in the order in which it first sees them.
    picture(world);
    for (const [name, list] of versions) {
      const texts = world.texts(name);
      const last = list.at(-1);
      if (texts === undefined || JSON.stringify(last?.leaf.texts) === JSON.stringify(texts)) continue;
      if (last) last.to = world.monotonic();
      list.push({ leaf: readLeaf(texts), from: world.monotonic(), to: Number.POSITIVE_INFINITY });
    }
  }
  /**
   * Certificates and bundles that are in use at the same time, although the bundle does not trust the
   * certificate.
   */
  function mistrusted(lagMs: number): string[] {
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
  return { look, mistrusted, count: () => [...versions.values()].map((list) => list.length) };
}

/** Runs a leader, and a new one after each that is killed. @returns the steps that they took */
async function lead(
  world: World,
  ms: number,
  options: { readonly kill?: (step: number) => boolean; readonly look: () => void },
): Promise<number> {
  let steps = 0;
  const start = (): ReturnType<World['leader']> =>
    world.leader({
      step: (name) => {
        if (!name.startsWith('after')) return;
        options.look();
        const step = steps++;
        if (options.kill?.(step) === true) throw new Killed('killed');
      },
    });
  let leader = start();
  const end = world.monotonic() + ms;
  while (world.monotonic() < end) {
    let nextMs = times.settleMs;
    try {
      await leader();
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

t.test('two rotations without faults', async (t) => {
  const world = await createWorld(t);
  const history = createHistory(world);
  const steps = await lead(world, 1.6 * times.caMs, { look: history.look });
  t.strictSame(history.mistrusted(lagMs), []);
  t.match(picture(world), /^C signing: C\/C C\/C C\/C C\/C$/);
  t.ok(steps > 40, `${steps} steps`);
  t.ok(history.count().every((count) => count > 10));

  // The model can fail: a lag that is longer than the wait.
  t.not(history.mistrusted(3 * times.settleMs).length, 0);
});

t.test('a leader is killed after any step of a rotation', async (t) => {
  const settled = 4 * times.settleMs;
  const rotation = (times.caMs * 2) / 3 - minute;
  let total = Number.POSITIVE_INFINITY;
  for (let victim = 0; victim < total; victim += sized(5, 1)) {
    const world = await createWorld(t);
    const history = createHistory(world);
    const first = await lead(world, minute, { look: history.look, kill: (step) => step === victim });
    world.advance(rotation - minute);
    const rest = await lead(world, settled, { look: history.look, kill: (step) => step === victim - first });
    total = Math.min(total, first + rest);
    t.strictSame(history.mistrusted(lagMs), [], `killed at step ${victim}`);
    t.equal(picture(world), 'B signing: B/B B/B B/B B/B', `killed at step ${victim}`);
  }
  t.ok(total >= 20, `${total} steps`);
});

t.test('a forbidden write of one Secret does not stop the others', async (t) => {
  const world = await createWorld(t);
  const end = world.store.fault(/archwright-webhook-tls$/, { status: 403 });
  await t.rejects(world.leader()(), /403/);
  t.equal(picture(world), 'nothing', 'nothing is decided without its content');
  end();
  world.store.fault(/^PATCH .*archwright-webhook-tls$/, { status: 403, message: 'not yours' });
  await t.rejects(world.leader()(), /not yours/);
  t.equal(picture(world), 'A signing: ?/ A/A A/A A/A');
});

t.test('a Secret that another leader creates between read and write stays', async (t) => {
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
  like(t, theirs, { 'tls.key': /PRIVATE KEY/ });
  t.strictSame(world.texts('agent'), theirs);
  t.equal(world.issued().filter((each) => each === 'agent missing').length, 1);
  t.equal(picture(world), 'A signing: A/A A/A A/A A/A');
});
