/** Before a pod is refused, the remembered tags of its images are confirmed. */
import { test, type Test } from 'tap';
import type { ImageFacts, ImageFactsSource } from '../../src/images/facts/facts.ts';
import { FactsCache } from '../../src/images/cache/cache.ts';
import { createPolicies } from '../../src/policy/effective/policies.ts';
import { defaultConfiguration } from '../../src/policy/configuration/configuration.ts';
import { defaultPolicy as policy } from '../support/placement-input.ts';
import { factsOf, hanging, podOf, serve, workload } from './support.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { recordingLog } from '../support/captured.ts';

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
      if (registry.gone) return Promise.resolve(factsOf(image, [], { error }));
      const architectures = images[image] ?? [];
      if (known.get(image)?.architectures !== architectures) {
        digests += 1;
        known.set(image, { architectures, digest: `sha256:${String(digests).padStart(64, '0')}` });
      }
      const { digest = '' } = known.get(image) ?? {};
      return Promise.resolve(factsOf(image, architectures, { digest }));
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

test('a pod that is created again and again does not cost a lookup each time', async (t) => {
  const images = { 'app:1': ['amd64'], 'base:1': ['arm64'] };
  const source = pushed(images);
  const { admitPod, clock } = await serveWithClock(t, { source });
  const refused = async (): Promise<number> => {
    const before = source.lookups.length;
    for (let turn = 0; turn < 5; turn += 1) t.notOk((await admitPod(['app:1', 'base:1'])).allowed);
    return source.lookups.length - before;
  };
  t.equal(await refused(), 2, 'one lookup per image');
  await clock.advance(4999);
  t.equal(await refused(), 0);
  await clock.advance(1);
  t.equal(await refused(), 2, 'one confirmation per image');
  t.equal(await refused(), 0);
});

test('digests and overrides are not confirmed', async (t) => {
  const digest = `app@sha256:${'b'.repeat(64)}`;
  const lookups: string[] = [];
  const source: ImageFactsSource = {
    lookup: ({ image }) => {
      lookups.push(image);
      return Promise.resolve(factsOf(image, ['amd64'], { digest: `sha256:${'b'.repeat(64)}` }));
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
      cache.learn(factsOf(`docker.io/library/${name}`, [architecture], { source: 'memory', confirmedAt }));
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
