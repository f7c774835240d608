import { test } from 'tap';
import { budgetMs } from '../../src/webhook/app.ts';
import type { ImageFacts, ImageFactsSource } from '../../src/images/facts/facts.ts';
import type { WebhookOptions } from '../../src/webhook/webhook.ts';
import { factsOf, hanging, scripted, serve, uid } from './support.ts';

test('an inspector that hangs holds a pod for the budget and no longer', async (t) => {
  const { admitPod, metric } = await serve(t, { inspector: hanging, inlineBudgetMs: () => 100 });
  const started = performance.now();
  const admitted = await admitPod(['a:1', 'b:1', 'c:1']);
  const took = performance.now() - started;
  t.ok(admitted.gated);
  t.ok(took >= 95 && took < 2000, `${Math.round(took)} ms for three images at once`);
  t.equal(await metric('archwright_admission_inline_waits_total{outcome="expired"}'), 1);
  t.equal(await metric('archwright_admission_unknown_images_total{code="unknown"}'), 3);
});

test('the question goes on, so that the next pod finds the answer', async (t) => {
  let tell: ((facts: ImageFacts) => void) | undefined;
  let questions = 0;
  const inspector: ImageFactsSource = {
    lookup: () => {
      questions += 1;
      return new Promise((resolve) => (tell = resolve));
    },
  };
  const { admitPod } = await serve(t, { inspector, inlineBudgetMs: () => 20 });
  t.ok((await admitPod(['late:1'])).gated);
  tell?.(factsOf('late:1', ['arm64']));
  t.strictSame((await admitPod(['late:1'])).required, ['arm64']);
  t.equal(questions, 1);
});

test('concurrent pods of one image share one question', async (t) => {
  const asked = scripted({ 'app:1': ['arm64'] });
  const { admitPod } = await serve(t, { inspector: asked });
  const all = await Promise.all(Array.from({ length: 30 }, () => admitPod(['app:1'])));
  t.ok(all.every(({ required }) => required?.[0] === 'arm64'));
  t.equal(asked.asked.length, 1);
});

/** A memory with a fault. */
function broken(parts: Partial<WebhookOptions['memory']>): WebhookOptions['memory'] {
  return {
    recall: () => undefined,
    lastKnown: () => undefined,
    lookup: (_question, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
      ),
    learn: () => undefined,
    levelOf: undefined,
    ...parts,
  };
}

test('what was known before serves where there is no time to ask', async (t) => {
  const memory = broken({ lastKnown: ({ image }) => factsOf(image, ['s390x'], { stale: true }) });
  const { admitPod } = await serve(t, { memory, inlineBudgetMs: () => 10 });
  const admitted = await admitPod(['a:1']);
  t.strictSame(admitted.required, ['s390x']);
  t.notOk(admitted.gated);
});

test('an inspection that ends by a fault leaves its image unknown', async (t) => {
  const memory = broken({ lookup: () => Promise.reject(new Error('a fault of ours')) });
  const { admitPod, metric, lines } = await serve(t, { memory });
  const admitted = await admitPod(['a:1']);
  t.ok(admitted.gated);
  t.equal(await metric('archwright_admission_lookup_failures_total'), 1);
  t.match(lines.at(-1), { level: 'error', err: { message: 'a fault of ours' } });
});

test('a fault in the decision lets the pod through with its uid', async (t) => {
  const faulty: [what: string, memory: WebhookOptions['memory']][] = [
    [
      'at once',
      broken({
        recall: () => {
          throw new Error('a fault of ours');
        },
      }),
    ],
    ['while waiting', broken({ lookup: () => Promise.resolve({ platforms: 7 } as unknown as ImageFacts) })],
    ['in the facts', broken({ recall: ({ image }) => ({ image, platforms: 7 }) as unknown as ImageFacts })],
  ];
  for (const [what, memory] of faulty) {
    const { admitPod, metric } = await serve(t, { memory });
    const admitted = await admitPod(['a:1']);
    t.match(admitted.raw, { uid, allowed: true, warnings: [/let through/] }, what);
    t.notOk('patch' in admitted.raw, what);
    t.notMatch(JSON.stringify(admitted.raw), 'a fault of ours', what);
    t.equal(await metric('archwright_admission_faults_total'), 1, what);
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
