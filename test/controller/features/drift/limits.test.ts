import t, { type Test } from 'tap';
import { createPullSecrets, type PullSecrets } from '../../../../src/cluster/pull-secrets.ts';
import { notesOf } from '../../../../src/controller/features/drift/drift.ts';
import { fairShare, runningTags } from '../../../../src/controller/features/drift/tags.ts';
import {
  formatDrifted,
  keyOfDrifted,
  maxDriftedBytes,
  maxDriftedTags,
  parseDrifted,
  type DriftedTag,
} from '../../../../src/images/sources/drifted-tags.ts';
import type { Secret } from '../../../../src/kube/api/objects.ts';
import { createMetrics } from '../../../../src/telemetry/metrics.ts';
import { aborted } from '../../../../src/async/wait.ts';
import { systemClock } from '../../../../src/async/clock.ts';
import { createIssuer } from '../../../support/registry/tokens.ts';
import { hour, setup, withPlatforms, type DriftSetup } from './setup.ts';
import { like } from '../../../support/like.ts';
import { parseReference } from '../../../../src/images/references/reference.ts';
import { runningPod } from '../../leader.ts';

const digest = `sha256:${'a'.repeat(64)}`;

function drifted(image: string, more: Partial<DriftedTag> = {}): DriftedTag {
  return { image, digest, lost: ['linux/arm64'], gained: [], since: 1_700_000_000_000, ...more };
}

/** Secrets with this password for a registry, by name. */
function secretsFor(host: () => string, passwords: Readonly<Record<string, string>>): PullSecrets {
  const read = (namespace: string, name: string): Promise<Secret | undefined> => {
    const password = passwords[name];
    if (password === undefined) return Promise.resolve(undefined);
    const auth = Buffer.from(`puller:${password}`).toString('base64');
    const config = Buffer.from(JSON.stringify({ auths: { [host()]: { auth } } })).toString('base64');
    const data = { '.dockerconfigjson': config };
    return Promise.resolve({ metadata: { namespace, name }, type: 'kubernetes.io/dockerconfigjson', data });
  };
  const cluster = { secret: read, serviceAccountPullSecrets: () => Promise.resolve([]) };
  return createPullSecrets({ cluster, keepMs: 60_000, clock: systemClock, metrics: createMetrics() });
}

async function setupPrivate(t: Test): Promise<DriftSetup> {
  let host = '';
  const pullSecrets = secretsFor(() => host, { good: 'right', bad: 'wrong' });
  const issuer = createIssuer({ users: { puller: 'right' } });
  const test = await setup(t, { registry: { auth: { kind: 'bearer', issuer } }, pullSecrets });
  host = test.registry.host;
  return test;
}

t.test('after a refusal, the next check tries the credentials of another pod', async (t) => {
  const test = await setupPrivate(t);
  const pulled = test.push('shop/web', withPlatforms('linux/amd64 linux/arm64'));
  test.push('shop/web', withPlatforms('linux/amd64'));
  test.pod('a', 'shop/web', { pulled, pullSecrets: ['bad'], namespace: 'a' });
  test.pod('b', 'shop/web', { pulled, pullSecrets: ['good'], namespace: 'b' });
  await test.advance(6 * hour);
  t.strictSame(test.notes(), []);
  t.equal(await test.leader.series('archwright_drift_checks_total{result="unauthorized"}'), 1);
  await test.advance(6 * hour);
  like(t, test.notes(), [{ lost: ['linux/arm64'] }]);
});

t.test('a check that takes too long ends', async (t) => {
  const source = (_: string, __: unknown, signal: AbortSignal) =>
    aborted(signal).then(() => Promise.reject(signal.reason as Error));
  const test = await setup(t, { pullSecrets: { mayHave: () => true, source } });
  test.pod('web', 'shop/web', { pulled: test.push('shop/web', withPlatforms('linux/amd64')) });
  await test.leader.settled();
  await test.clock.jump(6 * hour);
  const round = test.reconcile();
  await test.clock.advance(20_000);
  await round;
  t.equal(await test.leader.series('archwright_drift_checks_total{result="timeout"}'), 1);
});

t.test('images by digest, images that are never pulled, and ended pods are not checked', async (t) => {
  const test = await setup(t);
  const pulled = test.push('shop/web', withPlatforms('linux/amd64'));
  test.pod('never', 'shop/web', { pulled, pullPolicy: 'Never' });
  test.pod('starting', 'shop/web');
  const byDigest = { name: 'c', image: `${test.registry.host}/shop/web@${pulled.digest}` };
  test.store.put('/api/v1/namespaces/shop/pods/digest', {
    spec: { nodeName: 'a', containers: [byDigest] },
    status: { phase: 'Running', containerStatuses: [{ ...byDigest, imageID: byDigest.image }] },
  });
  test.pod('done', 'shop/done', { pulled, phase: 'Succeeded' });
  await test.advance(6 * hour);
  t.strictSame(test.counts(), { head: 0, get: 0 });
});

t.test('beyond the limit of tags, namespaces take turns, and each round chooses the same tags', async (t) => {
  const items = Array.from({ length: 1000 }, (_, index) => ({
    image: `app-${index}`,
    isSmall: index >= 990,
  }));
  const share = (of: typeof items, most: number) =>
    fairShare(of, most, ({ isSmall }) => [isSmall ? 'small' : 'crowd']);
  const chosen = share(items, 100);
  t.equal(chosen.length, 100);
  t.equal(chosen.filter(({ isSmall }) => isSmall).length, 10, 'all tags of the small namespace');
  t.strictSame(new Set(share(items.toReversed(), 100)), new Set(chosen));
  t.equal(share(items, 1000).length, 1000);
});

t.test('notes are bounded: losses first, then each namespace in turn', async (t) => {
  const gained = { lost: [], gained: ['linux/arm64'] };
  const crowd = Array.from({ length: 2 * maxDriftedTags }, (_, index) =>
    drifted(`r.example/crowd-${index}:1`, gained),
  );
  const small = drifted('r.example/z-small:1', gained);
  const lost = drifted('r.example/z-lost:1');
  const notes = (...tags: readonly DriftedTag[]) =>
    notesOf(tags, (image) => [image === small.image ? 'small' : 'crowd']);
  const found = parseDrifted(notes(...crowd, small, lost));
  t.equal(found.length, maxDriftedTags);
  const images = new Set(found.map(({ image }) => image));
  for (const { image } of [small, lost]) t.ok(images.has(image), image);

  const platforms = Array.from({ length: 64 }, (_, index) => `linux/${'a'.repeat(60)}${index}`);
  const data = notes(...crowd.map((each) => ({ ...each, gained: platforms })), lost);
  t.ok(JSON.stringify(data).length < 1.1 * maxDriftedBytes);
  t.ok(keyOfDrifted(lost.image) in data);
});

t.test('malformed notes are ignored', async (t) => {
  const good = drifted('r.example/app:1');
  const key = keyOfDrifted(good.image);
  t.strictSame(parseDrifted({ [key]: formatDrifted(good) }), [good]);
  const fields = JSON.parse(formatDrifted(good)) as object;
  const changes = [{ digest: 'x' }, { lost: 'arm64' }, { gained: [1] }, { since: 'now' }, { since: 7 }];
  const wrong = [...changes, { image: 'r.example/other:1' }].map((each) => ({ ...fields, ...each }));
  for (const value of ['{', ...[null, [], {}, ...wrong].map((each) => JSON.stringify(each))])
    t.strictSame(parseDrifted({ [key]: value }), [], value);
  t.strictSame(parseDrifted({ other: formatDrifted(good) }), []);
  t.strictSame(parseDrifted(undefined), []);
});

t.test('with `driftInterval` 0s, there are no checks, and earlier notes are removed', async (t) => {
  const test = await setup(t);
  const pulled = test.push('shop/web', withPlatforms('linux/amd64 linux/arm64'));
  test.pod('web', 'shop/web', { pulled });
  test.push('shop/web', withPlatforms('linux/amd64'));
  await test.advance(6 * hour);
  t.equal(test.notes().length, 1);
  test.registry.clearRequests();
  test.leader.configure({ driftInterval: 0 });
  const stop = test.store.fault(/^PATCH .*configmaps/, { status: 409 });
  const reads = () => test.store.received(/^GET .*configmaps/).length;
  const before = reads();
  await t.rejects(test.reconcile(), { code: 'conflict' });
  t.equal(reads() - before, 5, 'a few tries');
  stop();
  await test.advance(24 * hour);
  t.strictSame(test.notes(), []);
  t.strictSame(test.counts(), { head: 0, get: 0 });
  test.leader.configure({ driftInterval: hour });
  await test.advance(24 * hour);
  t.equal(test.counts().head, 24, 'a changed interval applies at once');
});

t.test('tags of another namespace are checked while a registry hangs', async (t) => {
  const test = await setup(t);
  const pulled = test.push('shop/web', withPlatforms('linux/amd64 linux/arm64'));
  for (let index = 0; index < 40; index += 1) {
    const repository = `slow/app-${index}`;
    test.pod(`slow-${index}`, repository, { namespace: 'attacker', pulled: test.push(repository, pulled) });
  }
  for (const name of ['web', 'cart', 'search']) {
    test.push(`shop/${name}`, pulled);
    test.pod(name, `shop/${name}`, { pulled });
  }
  const answer = Promise.withResolvers<void>();
  test.registry.faults.add(/slow/, { kind: 'after', event: answer.promise });
  await test.leader.settled();
  await test.clock.jump(6 * hour);
  const round = test.reconcile();
  const checked = (name: string): boolean =>
    test.registry.requests.some(({ path }) => path.includes(`shop/${name}`));
  await test.registry.waitFor(() => checked('web') && checked('cart') && checked('search'));
  answer.resolve();
  await round;
  t.equal(await test.leader.series('archwright_drift_tags{checked="yes"}'), 43);
});

t.test('a round costs no more than the tags that are checked, however many a namespace runs', async (t) => {
  const podOf = (namespace: string, names: readonly string[]) => {
    const images = names.map((image) => ({ image, pullPolicy: undefined, usedBy: 'c' }));
    return runningPod({ namespace, images });
  };
  const pods = Array.from({ length: 60 }, (_, pod) =>
    podOf(
      'attacker',
      Array.from({ length: 500 }, (_, index) => `evil/app-${pod}-${index}:1`),
    ),
  );
  let parsed = 0;
  const parse = (image: string) => {
    parsed += 1;
    return parseReference(image);
  };
  const tags = runningTags([...pods, podOf('shop', ['shop/web:1'])], parse);
  t.equal(parsed, 10_001);
  t.equal(tags.size, 10_001);
  t.ok(tags.has('docker.io/shop/web:1'));
});
