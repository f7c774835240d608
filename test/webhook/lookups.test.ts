/** How long an admission waits for lookups, and remembered tags, which are confirmed before a pod is refused. */
import { test, type Test } from 'tap';
import { FactsCache } from '../../src/images/cache/cache.ts';
import type { ImageFacts, ImageFactsSource, ImageRequest } from '../../src/images/facts/facts.ts';
import { defaultConfiguration } from '../../src/policy/configuration/configuration.ts';
import { createPolicies } from '../../src/policy/effective/policies.ts';
import { budgetMs } from '../../src/webhook/app.ts';
import type { WebhookOptions } from '../../src/webhook/webhook.ts';
import { recordingLog } from '../support/captured.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { like } from '../support/like.ts';
import { defaultPolicy as policy } from '../support/placement-input.ts';
import { clusterOf, freshFacts, hanging, passBudget, podOf, serve, uid, workload } from './support.ts';

test('a hanging source delays a pod no longer than the budget', async (t) => {
  const clock = createFakeClock();
  const { admitPod, metric } = await serve(t, { source: hanging, inlineBudgetMs: () => 100, clock });
  const admitting = admitPod(['a:1', 'b:1', 'c:1']);
  await passBudget(t, clock, 100);
  t.ok((await admitting).gated, 'one budget for three images');
  t.equal(await metric('archwright_admission_inline_waits_total{outcome="expired"}'), 1);
  t.equal(await metric('archwright_admission_unknown_images_total{code="unknown"}'), 3);
});

test('slow reads of Secrets delay a pod no longer than the budget', async (t) => {
  const cluster = clusterOf({ secret: () => new Promise(() => undefined) });
  const clock = createFakeClock();
  const { admitPod } = await serve(t, { cluster, inlineBudgetMs: () => 50, clock });
  const admitting = admitPod(['private.example/app:1'], { imagePullSecrets: [{ name: 'regcred' }] });
  await passBudget(t, clock, 50);
  t.ok((await admitting).gated);
});

test('the lookup continues beyond the budget, so the next pod finds its result', async (t) => {
  let tell: ((facts: ImageFacts) => void) | undefined;
  let requests = 0;
  const source: ImageFactsSource = {
    lookup: () => {
      requests += 1;
      return new Promise((resolve) => (tell = resolve));
    },
  };
  const { admitPod } = await serve(t, { source, inlineBudgetMs: () => 20 });
  t.ok((await admitPod(['late:1'])).gated);
  tell?.(freshFacts('late:1', ['arm64']));
  t.strictSame((await admitPod(['late:1'])).required, ['arm64']);
  t.equal(requests, 1);
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
    maxAgeMs === Number.POSITIVE_INFINITY ? freshFacts(image, ['s390x']) : undefined;
  const cache = broken({ peek });
  const { admitPod } = await serve(t, { cache, inlineBudgetMs: () => 10 });
  const admitted = await admitPod(['a:1']);
  t.strictSame(admitted.required, ['s390x']);
  t.notOk(admitted.gated);
});

test('an exception in the decision admits the pod unchanged, with its uid', async (t) => {
  const failed = () => Promise.reject(new Error('injected failure'));
  const thrown = () => {
    throw new Error('injected failure');
  };
  const faulty: [what: string, cache: WebhookOptions['cache']][] = [
    ['at once', broken({ peek: thrown })],
    ['in a lookup', broken({ get: failed })],
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

test('the API server’s own timeout bounds the budget', async (t) => {
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
});

/** Images that a test can push again. */
function pushed(
  images: Record<string, readonly string[]>,
): ImageFactsSource & { lookups: string[]; gone: boolean } {
  let digests = 0;
  const known = new Map<string, { readonly architectures: readonly string[]; readonly digest: string }>();
  const registry = {
    lookups: [] as string[],
    gone: false,
    lookup: ({ image }: { image: string }): Promise<ImageFacts> => {
      registry.lookups.push(image);
      const error = { code: 'unavailable' as const, message: 'no way' };
      if (registry.gone) return Promise.resolve(freshFacts(image, [], { error }));
      const architectures = images[image] ?? [];
      if (known.get(image)?.architectures !== architectures) {
        digests += 1;
        known.set(image, { architectures, digest: `sha256:${String(digests).padStart(64, '0')}` });
      }
      const { digest = '' } = known.get(image) ?? {};
      return Promise.resolve(freshFacts(image, architectures, { digest }));
    },
  };
  return registry;
}

/** A webhook whose cache has a fake clock. `later`: what is remembered is older than 5 s. */
async function serveWithClock(t: Test, options: Parameters<typeof serve>[1] & { source: ImageFactsSource }) {
  const clock = createFakeClock();
  const cache = new FactsCache({ source: options.source, log: recordingLog().log, clock });
  return { ...(await serve(t, { ...options, cache, clock })), clock, later: () => clock.advance(5001) };
}

test('an image pushed again with the missing architecture no longer leads to a refusal', async (t) => {
  const images: Record<string, readonly string[]> = { 'app:1': ['amd64'], 'base:1': ['arm64'] };
  const source = pushed(images);
  const { admitPod, metric, later } = await serveWithClock(t, { source });
  t.notOk((await admitPod(['app:1', 'base:1'])).allowed);
  await later();
  const before = source.lookups.length;
  images['app:1'] = ['amd64', 'arm64'];
  t.strictSame((await admitPod(['app:1', 'base:1'])).required, ['arm64']);
  t.equal(source.lookups.length, before + 2, 'both were looked up');
  t.strictSame((await admitPod(['app:1'])).required, ['amd64', 'arm64'], 'and remembered');
  t.equal(await metric('archwright_admissions_total{kind="Pod",outcome="denied"}'), 1);
  t.equal(await metric('archwright_admissions_total{kind="Pod",outcome="placed"}'), 2);
});

test('digests are not confirmed', async (t) => {
  const digest = `app@sha256:${'b'.repeat(64)}`;
  const lookups: string[] = [];
  const source: ImageFactsSource = {
    lookup: ({ image }) => {
      lookups.push(image);
      return Promise.resolve(freshFacts(image, ['amd64'], { digest: `sha256:${'b'.repeat(64)}` }));
    },
  };
  const { admitPod } = await serve(t, {
    source,
    policies: { policyOf: () => ({ ...policy, schedulableArchitectures: ['arm64'] }) },
  });
  for (let turn = 0; turn < 3; turn += 1) t.notOk((await admitPod([digest])).allowed);
  t.strictSame(lookups, [digest]);
});

test('if the registry does not respond in time, or fails, remembered facts lead to the refusal', async (t) => {
  const failing = pushed({});
  failing.gone = true;
  const confirmedAt = new Date(Date.now() - 60_000).toISOString();
  for (const source of [hanging, failing]) {
    const { admitPod, cache } = await serve(t, { source, inlineBudgetMs: () => 50 });
    for (const [name, architecture] of [
      ['app:1', 'amd64'],
      ['base:1', 'arm64'],
    ] as const)
      cache.learn(freshFacts(`docker.io/library/${name}`, [architecture], { source: 'memory', confirmedAt }));
    const { allowed, message } = await admitPod(['app:1', 'base:1']);
    t.equal(allowed, false);
    t.match(message, /app:1 has amd64/);
  }
  t.strictSame(failing.lookups, ['app:1', 'base:1']);
});

test('tags are confirmed before a pod pends, and for a DaemonSet', async (t) => {
  const images: Record<string, readonly string[]> = { 'app:1': ['amd64'], 'base:1': ['arm64'] };
  const source = pushed(images);
  const policies = createPolicies({
    configuration: () => configuration,
    controllerLeads: () => true,
  });
  const configuration = { ...defaultConfiguration(), onNoCommonArchitecture: 'pend' as const };
  const { admit, admitPod, later } = await serveWithClock(t, { source, policies });
  const template = { metadata: {}, spec: podOf(['app:1', 'base:1']).spec };
  const daemonSet = workload('DaemonSet', { metadata: { name: 'd' }, spec: { template } });
  t.strictSame((await admit(daemonSet)).required, ['no-common-architecture']);
  images['app:1'] = ['amd64', 'arm64'];
  await later();
  t.strictSame((await admit(daemonSet)).required, ['arm64']);
  images['base:1'] = ['s390x'];
  images['app:1'] = ['amd64', 's390x'];
  t.strictSame((await admitPod(['app:1', 'base:1'])).required, ['arm64'], 'remembered');
});
