import t from 'tap';
import { createPasses, type PassOutcome } from '../../../src/controller/reconcile/passes.ts';
import { KubeError } from '../../../src/kube/api/errors.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const minute = 60_000;

function setup(script: (count: number) => PassOutcome | Error) {
  const time = createFakeClock();
  const ending = new AbortController();
  const at: number[] = [];
  const problems: string[] = [];
  const start = time.monotonic();
  const passes = createPasses({
    signal: ending.signal,
    clock: time,
    onFailure: (problem) => problems.push(problem),
    sleep: time.sleep,
    random: () => 1,
  });
  const running = passes.run(async () => {
    at.push(time.monotonic() - start);
    const outcome = script(at.length);
    if (outcome instanceof Error) throw outcome;
    return outcome;
  });
  return { time, passes, at, problems, ending, running };
}

t.test('it looks again when it is time, or when something happens', async (t) => {
  const { time, passes, at, ending, running } = setup(() => ({ wrote: false, nextMs: 10_000 }));
  await time.advance(25_000);
  t.same(at, [0, 10_000, 20_000]);
  passes.kick();
  passes.kick();
  await time.advance(1000);
  t.same(at, [0, 10_000, 20_000, 25_000], 'several reasons are one');
  ending.abort(new Error('end'));
  await running;
  t.equal(time.pending, 0);
});

t.test('what happens during a pass is a reason for the next one', async (t) => {
  let passes: ReturnType<typeof setup>['passes'] | undefined;
  const all = setup((count) => {
    if (count === 1) queueMicrotask(() => passes?.kick());
    return { wrote: false, nextMs: 10_000 };
  });
  ({ passes } = all);
  await all.time.advance(5000);
  t.same(all.at, [0, 0]);
  all.passes.kick();
  await all.time.advance(0);
  t.same(all.at, [0, 0, 5000]);
  all.ending.abort(new Error('end'));
  await all.running;
});

t.test('failures: back-off, from the beginning after a success', async (t) => {
  const error = new KubeError('forbidden', 'GET /x', 'not yours');
  const { time, at, problems, ending, running } = setup((count) =>
    count === 4 || count > 12 ? { wrote: false, nextMs: minute } : error,
  );
  await time.advance(4000 + 3000);
  t.same(at, [0, 1000, 3000, 7000]);
  t.same(problems, ['not yours', 'not yours', 'not yours']);
  await time.advance(minute + 1000 + 2000);
  t.same(at.slice(4), [67_000, 68_000, 70_000]);
  await time.advance(10 * minute);
  const pauses = at.map((each, index) => each - (at[index - 1] ?? 0));
  t.equal(Math.max(...pauses), minute, 'a minute at most');
  ending.abort(new Error('end'));
  await running;
});

t.test('overtaken by somebody else: at once, once', async (t) => {
  const conflict = new KubeError('conflict', 'PATCH /x', 'the object has been modified');
  const { time, at, problems, ending, running } = setup((count) =>
    count < 4 ? conflict : { wrote: false, nextMs: minute },
  );
  await time.advance(minute);
  t.same(at, [0, 100, 2100, 6100]);
  t.same(problems, [], 'and no word about it');
  ending.abort(new Error('end'));
  await running;
});

t.test('two that correct each other do not do so for ever', async (t) => {
  let kick = (): void => undefined;
  const { time, passes, at, ending, running } = setup(() => {
    // The other one answers to each write.
    queueMicrotask(() => kick());
    return { wrote: true, nextMs: minute };
  });
  ({ kick } = passes);
  await time.advance(60 * minute);
  t.ok(at.length < 80, `${at.length} passes in an hour`);
  t.ok(at.length > 50);
  ending.abort(new Error('end'));
  await running;
});

t.test('a long pause does not overflow a timer, and an end ends each pause', async (t) => {
  const { time, at, ending, running } = setup(() => ({ wrote: true, nextMs: Number.POSITIVE_INFINITY }));
  await time.advance(1000);
  t.same(at, [0]);
  ending.abort(new Error('end'));
  await running;
  t.equal(time.pending, 0);
});
