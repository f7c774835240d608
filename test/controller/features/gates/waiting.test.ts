/** When a waiting pod is looked up again. */
import t from 'tap';
import { nextLookMs } from '../../../../src/controller/features/gates/waiting.ts';

/** The ages at which a pod is looked up in its first two minutes. */
function looks(uid: string, from = 0): number[] {
  const ages: number[] = [];
  for (let age = from; age < 120_000;) {
    age += nextLookMs(age, uid);
    ages.push(age);
  }
  return ages;
}

t.test('pauses double up to 15 seconds', async (t) => {
  const ages = looks('u');
  const pauses = ages.map((age, index) => age - (ages[index - 1] ?? 0));
  for (const [index, pause] of pauses.entries()) {
    t.ok(pause > 0 && pause <= 15_000, `${pause} ms`);
    if (index > 1 && index < 5) t.ok(Math.abs(pause / (pauses[index - 1] ?? 0) - 2) < 0.001);
  }
  t.ok(ages[0] !== undefined && ages[0] >= 1000 && ages[0] <= 1200);
  t.equal(Math.round(pauses.at(-1) ?? 0), 15_000);
});

t.test('a new leader continues at the same times', async (t) => {
  for (const from of [1, 500, 3000, 17_000, 40_000, 100_000]) {
    const rounded = (list: readonly number[]): number[] => list.map(Math.round);
    t.strictSame(
      rounded(looks('u', from)),
      rounded(looks('u')).filter((age) => age > from),
      `${from}`,
    );
  }
});

t.test('lookups of pods that were created together are spread out', async (t) => {
  const first = Array.from({ length: 1000 }, (_, index) => nextLookMs(0, `uid-${index}`));
  t.ok(Math.min(...first) < 1020 && Math.max(...first) > 1180);
  t.ok(new Set(first).size > 990);
});
