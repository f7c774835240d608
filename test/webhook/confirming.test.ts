/** Before a pod is refused, the remembered tags of its images are confirmed. */
import { test } from 'tap';
import type { ImageFacts, ImageFactsSource } from '../../src/images/facts/facts.ts';
import { FactsMemory } from '../../src/images/memory/memory.ts';
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

test('an image pushed again with the missing architecture no longer leads to a refusal', async (t) => {
  const images: Record<string, readonly string[]> = { 'app:1': ['amd64'], 'base:1': ['arm64'] };
  const inspector = pushed(images);
  const { admitPod, metric } = await serve(t, { inspector });
  t.notOk((await admitPod(['app:1', 'base:1'])).allowed);
  const before = inspector.lookups.length;
  images['app:1'] = ['amd64', 'arm64'];
  t.strictSame((await admitPod(['app:1', 'base:1'])).required, ['arm64']);
  t.equal(inspector.lookups.length, before + 2, 'both were looked up');
  t.strictSame((await admitPod(['app:1'])).required, ['amd64', 'arm64'], 'and remembered');
  t.equal(await metric('archwright_admissions_total{kind="Pod",outcome="denied"}'), 1);
  t.equal(await metric('archwright_admissions_total{kind="Pod",outcome="placed"}'), 2);
});

test('a pod that is created again and again does not cost a lookup each time', async (t) => {
  const images = { 'app:1': ['amd64'], 'base:1': ['arm64'] };
  const inspector = pushed(images);
  const clock = createFakeClock();
  const memory = new FactsMemory({ source: inspector, log: recordingLog().log, clock });
  const { admitPod } = await serve(t, { inspector, memory, clock });
  const refused = async (): Promise<number> => {
    const before = inspector.lookups.length;
    for (let turn = 0; turn < 5; turn += 1) t.notOk((await admitPod(['app:1', 'base:1'])).allowed);
    return inspector.lookups.length - before;
  };
  t.equal(await refused(), 4, 'one lookup per image, and one confirmation per image');
  t.equal(await refused(), 0);
  await clock.advance(4999);
  t.equal(await refused(), 0);
  await clock.advance(1);
  t.equal(await refused(), 2);
});

test('digests and overrides are not confirmed', async (t) => {
  const digest = `app@sha256:${'b'.repeat(64)}`;
  const lookups: string[] = [];
  const inspector: ImageFactsSource = {
    lookup: ({ image }) => {
      lookups.push(image);
      return Promise.resolve(factsOf(image, ['amd64'], { digest: `sha256:${'b'.repeat(64)}` }));
    },
  };
  const { admitPod } = await serve(t, {
    inspector,
    policies: { policyOf: () => ({ ...policy, schedulableArchitectures: ['arm64'] }) },
  });
  for (let turn = 0; turn < 3; turn += 1) t.notOk((await admitPod([digest])).allowed);
  t.strictSame(lookups, [digest]);
});

test('if the registry does not respond in time, remembered facts lead to the refusal', async (t) => {
  const inspector = pushed({ 'app:1': ['amd64'], 'base:1': ['arm64'] });
  let isHanging = false;
  const sometimes: ImageFactsSource = {
    lookup: (question, options) => (isHanging ? hanging : inspector).lookup(question, options),
  };
  const { admitPod } = await serve(t, { inspector: sometimes, inlineBudgetMs: () => 50 });
  t.notOk((await admitPod(['app:1', 'base:1'])).allowed);
  isHanging = true;
  t.match(await admitPod(['app:1', 'base:1']), {
    allowed: false,
    message: /app:1 has amd64/,
  });
  isHanging = false;
  const gone = pushed({ 'app:1': ['amd64'], 'base:1': ['arm64'] });
  const other = await serve(t, { inspector: gone });
  t.notOk((await other.admitPod(['app:1', 'base:1'])).allowed);
  gone.gone = true;
  t.match(await other.admitPod(['app:1', 'base:1']), { allowed: false });
});

test('tags are confirmed before a pod pends, and for a DaemonSet', async (t) => {
  const images: Record<string, readonly string[]> = { 'app:1': ['amd64'], 'base:1': ['arm64'] };
  const inspector = pushed(images);
  const policies = createPolicies({
    configuration: () => configuration,
    controllerLeads: () => true,
  });
  const configuration = { ...defaultConfiguration(), onNoCommonArchitecture: 'pend' as const };
  const { admit, admitPod } = await serve(t, { inspector, policies });
  const template = { metadata: {}, spec: podOf(['app:1', 'base:1']).spec };
  const daemonSet = workload('DaemonSet', { metadata: { name: 'd' }, spec: { template } });
  t.strictSame((await admit(daemonSet)).required, ['no-common-architecture']);
  images['app:1'] = ['amd64', 'arm64'];
  t.strictSame((await admit(daemonSet)).required, ['arm64']);
  images['base:1'] = ['s390x'];
  images['app:1'] = ['amd64', 's390x'];
  t.strictSame((await admitPod(['app:1', 'base:1'])).required, ['arm64'], 'remembered');
});
