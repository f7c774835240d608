import { test } from 'tap';
import { budgetMs } from '../../src/webhook/app.ts';
import type { ImageFacts, ImageFactsSource, ImageRequest } from '../../src/images/facts/facts.ts';
import type { WebhookOptions } from '../../src/webhook/webhook.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { factsOf, hanging, passBudget, serve, uid } from './support.ts';
import { like } from '../support/like.ts';

test('a hanging source delays a pod no longer than the budget', async (t) => {
  const clock = createFakeClock();
  const { admitPod, metric } = await serve(t, { source: hanging, inlineBudgetMs: () => 100, clock });
  const admitting = admitPod(['a:1', 'b:1', 'c:1']);
  await passBudget(t, clock, 100);
  t.ok((await admitting).gated, 'one budget for three images');
  t.equal(await metric('archwright_admission_inline_waits_total{outcome="expired"}'), 1);
  t.equal(await metric('archwright_admission_unknown_images_total{code="unknown"}'), 3);
});

test('the lookup continues beyond the budget, so the next pod finds its result', async (t) => {
  let tell: ((facts: ImageFacts) => void) | undefined;
  let questions = 0;
  const source: ImageFactsSource = {
    lookup: () => {
      questions += 1;
      return new Promise((resolve) => (tell = resolve));
    },
  };
  const { admitPod } = await serve(t, { source, inlineBudgetMs: () => 20 });
  t.ok((await admitPod(['late:1'])).gated);
  tell?.(factsOf('late:1', ['arm64']));
  t.strictSame((await admitPod(['late:1'])).required, ['arm64']);
  t.equal(questions, 1);
});

/** A cache with a defect. */
function broken(parts: Partial<WebhookOptions['cache']>): WebhookOptions['cache'] {
  return {
    peek: () => undefined,
    get: (_request, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
      ),
    learn: () => undefined,
    levelOf: undefined,
    ...parts,
  };
}

test('without time for a lookup, old facts are used', async (t) => {
  const peek = ({ image, maxAgeMs }: ImageRequest) =>
    maxAgeMs === Number.POSITIVE_INFINITY ? factsOf(image, ['s390x']) : undefined;
  const cache = broken({ peek });
  const { admitPod } = await serve(t, { cache, inlineBudgetMs: () => 10 });
  const admitted = await admitPod(['a:1']);
  t.strictSame(admitted.required, ['s390x']);
  t.notOk(admitted.gated);
});

test('an exception in the decision admits the pod unchanged, with its uid', async (t) => {
  const faulty: [what: string, cache: WebhookOptions['cache']][] = [
    [
      'at once',
      broken({
        peek: () => {
          throw new Error('injected failure');
        },
      }),
    ],
    ['in a lookup', broken({ get: () => Promise.reject(new Error('injected failure')) })],
    ['while waiting', broken({ get: () => Promise.resolve({ platforms: 7 } as unknown as ImageFacts) })],
    ['in the facts', broken({ peek: ({ image }) => ({ image, platforms: 7 }) as unknown as ImageFacts })],
  ];
  for (const [what, cache] of faulty) {
    const { admitPod, metric } = await serve(t, { cache });
    const admitted = await admitPod(['a:1']);
    like(t, admitted.raw, { uid, allowed: true, warnings: [/let through/] }, what);
    t.notOk('patch' in admitted.raw, what);
    t.notMatch(JSON.stringify(admitted.raw), 'injected failure', what);
    t.equal(await metric('archwright_admissions_total{kind="Pod",outcome="fault"}'), 1, what);
  }
});

test('the API server’s own timeout bounds the budget', (t) => {
  t.equal(budgetMs(150, '/mutate?timeout=10s'), 150);
  t.equal(budgetMs(5000, '/mutate?timeout=2s'), 1000);
  t.equal(budgetMs(5000, '/mutate?a=b&timeout=2s&c=d'), 1000);
  for (const url of [
    undefined,
    '/mutate',
    '/mutate?timeout=soon',
    '/mutate?timeout=2sx',
    '/mutate?nottimeout=2s',
  ]) {
    t.equal(budgetMs(5000, url), 5000, String(url));
  }
  t.end();
});
