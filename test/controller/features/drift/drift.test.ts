import t from 'tap';
import { requestFor } from '../../../support/facts.ts';
import { hour, setup, withPlatforms, type DriftSetup } from './setup.ts';
import { neverAborted } from '../../../support/never-aborted.ts';
import { like } from '../../../support/like.ts';
import { changeOf } from '../../../../src/controller/features/drift/check.ts';
import { artifact, platformOf } from '../../../support/registry/content.ts';
import type { FullPlatform } from '../../../../src/names/platform.ts';
import type { Amd64Level, NodeClass } from '../../../../src/nodes/node-class.ts';

const both = 'linux/amd64 linux/arm64';

/** The architectures that the leader's cache returns for a new pod. */
function platformsAt({ cache }: DriftSetup, image: string): readonly string[] | undefined {
  const found = cache.peek(requestFor(image));
  return found?.platforms.map(({ architecture }) => architecture);
}

t.test('in 24 hours, each tag costs one GET and three HEADs, spread evenly, under any leader', async (t) => {
  const test = await setup(t);
  const tags = 60;
  for (let index = 0; index < tags; index += 1) {
    const repository = `shop/app-${index}`;
    const pulled = test.push(repository, withPlatforms(both, repository));
    test.pod(`a-${index}`, repository, { pulled });
    test.pod(`b-${index}`, repository, { pulled, namespace: 'bank', node: 'b' });
  }
  const byHour: number[] = [];
  for (let passed = 0; passed < 24; passed += 1) {
    if (passed % 3 === 0 && passed <= 18) await test.lead();
    const before = test.counts();
    await test.advance(hour);
    const { head, get } = test.counts();
    byHour.push(head + get - before.head - before.get);
  }
  t.strictSame(test.counts(), { head: 3 * tags, get: tags });
  t.ok(Math.max(...byHour) < 25, `the busiest hour has ${Math.max(...byHour)} of ${4 * tags}`);
  t.equal(await test.leader.series('archwright_drift_tags{checked="yes"}'), tags);
  t.equal(await test.leader.series('archwright_drift_checks_total{result="same"}'), tags, 'of six hours');
  t.strictSame(test.store.writes(), [], 'nothing is written');
});

t.test('after an API server with a wrong clock has answered, checks go on', async (t) => {
  const test = await setup(t);
  test.pod('pod', 'shop/app', { pulled: test.push('shop/app', withPlatforms(both)) });
  await test.advance(24 * hour);
  t.strictSame(test.counts(), { head: 3, get: 1 });
  const time = test.clock.now();
  test.clock.setWall(time + 365 * 24 * hour);
  await test.reconcile();
  test.clock.setWall(time);
  // For half an interval, the cache answers from the check a year ahead.
  await test.advance(3 * hour);
  test.registry.clearRequests();
  await test.advance(24 * hour);
  t.equal(test.counts().head, 4);
});

t.test('a lost architecture leads to an event, a metric and a note; the next pod avoids it', async (t) => {
  const test = await setup(t);
  const pulled = test.push('shop/web', withPlatforms(both));
  test.pod('web-1', 'shop/web', { pulled, owner: 'web' });
  test.pod('web-2', 'shop/web', { pulled, owner: 'web', replicaSet: 'web-next', node: 'b' });
  test.pod('cart', 'shop/web', { pulled, owner: 'cart', namespace: 'bank' });
  test.pod('bare', 'shop/web', { pulled });
  const image = test.image('shop/web');
  await test.cache.get(requestFor(image), { signal: neverAborted });
  test.registry.clearRequests();
  await test.advance(6 * hour);
  t.equal(test.counts().get, 0, 'the agent has its facts');
  t.strictSame(test.leader.events, []);

  const now = test.push('shop/web', withPlatforms('linux/amd64', 'second'));
  t.strictSame(platformsAt(test, image), ['amd64', 'arm64'], 'not noticed yet');
  test.registry.clearRequests();
  await test.advance(6 * hour);
  t.strictSame(test.counts(), { head: 1, get: 1 });
  t.strictSame(platformsAt(test, image), ['amd64'], 'the next pod is placed by the new image');
  const about = test.leader.events.map((each) => `${each.about.kind}/${each.about.name}`);
  t.strictSame(about.sort(), ['Deployment/cart', 'Deployment/web', 'Pod/bare'], 'one event per workload');
  const [event] = test.leader.events;
  like(t, event, {
    type: 'Warning',
    reason: 'ImageLostArchitecture',
    message: /shop\/web:1 lost arm64: .*pushed again/,
  });
  t.ok(event?.message.includes(now.digest) && event.message.includes(pulled.digest));
  like(t, test.notes(), [{ image, digest: now.digest, lost: ['linux/arm64'], gained: [] }]);
  const lost = () => test.leader.series('archwright_drifted_tags{change="lost",architecture="arm64"}');
  t.equal(await lost(), 1);
  t.equal(await test.leader.series('archwright_drift_checks_total{result="changed"}'), 1);

  await test.lead();
  await test.reconcile();
  t.equal(await lost(), 1, 'the next leader reads the notes');
  t.strictSame(test.leader.events, []);
  test.registry.clearRequests();
  await test.advance(6 * hour);
  t.strictSame(test.counts(), { head: 1, get: 0 });
  t.equal(test.leader.events.length, 3, 'the events are repeated in each interval');

  for (const name of ['web-1', 'web-2', 'bare']) test.store.remove(`/api/v1/namespaces/shop/pods/${name}`);
  test.pod('cart', 'shop/web', { pulled: now, owner: 'cart', namespace: 'bank' });
  await test.leader.settled();
  await test.reconcile();
  t.strictSame(test.notes(), [], 'all pods run the current image of the tag');
  t.equal(await lost(), 0);
});

t.test('gained architectures are noted and counted, without an event', async (t) => {
  const test = await setup(t);
  const pulled = test.push('shop/web', withPlatforms('linux/amd64'));
  test.pod('web', 'shop/web', { pulled, owner: 'web' });
  await test.advance(6 * hour);
  const now = test.push('shop/web', withPlatforms('linux/amd64 linux/arm64 linux/arm/v7'));
  await test.advance(6 * hour);
  like(t, test.notes(), [{ digest: now.digest, lost: [], gained: ['linux/arm/v7', 'linux/arm64'] }]);
  t.strictSame(test.leader.events, []);
  for (const architecture of ['arm64', 'arm'])
    t.equal(
      await test.leader.series(`archwright_drifted_tags{change="gained",architecture="${architecture}"}`),
      1,
    );
  test.push('shop/web', withPlatforms('linux/amd64', 'back'));
  await test.advance(6 * hour);
  t.strictSame(test.notes(), [], 'the tag lost them again, and no pod ever had them');
});

t.test('a tag pushed again with the same platforms costs two GETs, once', async (t) => {
  const test = await setup(t);
  const pulled = test.push('shop/web', withPlatforms(both));
  test.pod('web', 'shop/web', { pulled });
  test.push('shop/web', withPlatforms(both, 'second'));
  await test.advance(24 * hour);
  t.strictSame(test.counts(), { head: 3, get: 2 }, 'the manifest of the tag, and the one that the pod runs');
  t.strictSame(test.notes(), []);
});

t.test('if the registry deleted the image that pods run, the nodes of the pods show the loss', async (t) => {
  const test = await setup(t);
  test.push('shop/web', withPlatforms('linux/amd64'));
  test.pod('web', 'shop/web', { pulled: withPlatforms(both, 'collected'), node: 'b' });
  await test.advance(6 * hour);
  like(t, test.notes(), [{ lost: ['linux/arm64'], gained: [] }]);
});

t.test('a tag that became an artifact has lost all platforms', async (t) => {
  const test = await setup(t);
  test.pod('web', 'shop/web', { pulled: test.push('shop/web', withPlatforms(both)) });
  test.push('shop/web', artifact());
  await test.advance(6 * hour);
  like(t, test.notes(), [{ lost: ['linux/amd64', 'linux/arm64'], gained: [] }]);
});

t.test('with CRI-O, which reports no index digest, the facts in the cache are compared', async (t) => {
  const test = await setup(t, { nodes: { a: { architecture: 'arm64', runtime: 'cri-o' } } });
  test.push('shop/web', withPlatforms(both));
  test.pod('web', 'shop/web', { pulled: withPlatforms('linux/arm64', 'of the index') });
  await test.advance(12 * hour);
  t.strictSame(test.notes(), [], 'no gain');
  t.strictSame(test.counts(), { head: 1, get: 1 }, 'one GET');
  t.equal(await test.leader.series('archwright_drift_checks_total{result="same"}'), 2);
  test.push('shop/web', withPlatforms('linux/amd64', 'second'));
  await test.advance(12 * hour);
  like(t, test.notes(), [{ lost: ['linux/arm64'], gained: [] }]);
});

t.test('a failing registry changes nothing, and gets no more requests than a healthy one', async (t) => {
  const test = await setup(t);
  const pulled = test.push('shop/web', withPlatforms(both));
  test.pod('web', 'shop/web', { pulled, owner: 'web' });
  test.push('shop/web', withPlatforms('linux/amd64', 'second'));
  await test.advance(6 * hour);
  const notes = test.notes();
  t.equal(notes.length, 1);
  const writes = test.store.writes().length;
  test.registry.clearRequests();
  const stop = test.registry.faults.add(/./, { kind: 'status', status: 503 });
  await test.advance(24 * hour);
  t.strictSame(test.counts(), { head: 4, get: 0 });
  t.strictSame(test.notes(), notes);
  t.equal(test.store.writes().length, writes, 'unchanged notes are not written again');
  t.ok(((await test.leader.series('archwright_drift_checks_total{result="unavailable"}')) ?? 0) >= 4);
  stop();
  test.push('shop/web', withPlatforms(both, 'third'));
  await test.advance(6 * hour);
  t.strictSame(test.notes(), [], 'healthy again');
});

const platforms = (text: string): FullPlatform[] =>
  text.split(' ').map((each) => platformOf(each) as unknown as FullPlatform);
const manifest = 'application/vnd.oci.image.manifest.v1+json';

function amd64(amd64Level?: Amd64Level): NodeClass {
  const runtime = { name: 'containerd', version: '1.7.27' };
  return { os: 'linux', architecture: 'amd64', runtime, ...(amd64Level && { amd64Level }) };
}
const arm64: NodeClass = { os: 'linux', architecture: 'arm64', aarch32: true };

t.test('a lost platform counts if a node could run it and may not run the remaining ones', async (t) => {
  const single = 'linux/amd64/v3';
  const amd = 'linux/amd64';
  const cases: [about: string, before: string, now: string, classes: NodeClass[], change?: object][] = [
    ['every CPU has the level', amd, single, [amd64(3), amd64(4)], { lost: [] }],
    ['a CPU lacks the level', amd, single, [amd64(3), amd64(2)], { lost: [amd] }],
    ['the level of a CPU is unknown', amd, single, [amd64()], { lost: [amd] }],
    ['no node of the architecture', both, amd, [amd64(2)]],
    ['a 32-bit program beside one for the node', 'linux/arm64 linux/arm/v7', 'linux/arm64', [arm64]],
    ['a 32-bit program that a node ran', 'linux/arm/v7', amd, [arm64], { lost: ['linux/arm/v7'] }],
    ['a gain', amd, both, [amd64(1)], { lost: [], gained: ['linux/arm64'] }],
    ['a variant', both, `${single} linux/arm64`, [amd64(1), arm64], { lost: [amd], gained: [single] }],
  ];
  for (const [about, before, now, classes, change] of cases) {
    const mediaType = now.includes(' ') ? undefined : manifest;
    const found = changeOf({
      before: platforms(before),
      isComplete: true,
      now: { platforms: platforms(now), ...(mediaType && { mediaType }) },
      classes,
    });
    if (change) like(t, found, change, about);
    else t.equal(found, undefined, about);
  }
  const compared = { before: platforms(amd), classes: [amd64(1)] };
  const artifact = changeOf({ ...compared, isComplete: true, now: { platforms: [] } });
  like(t, artifact, { lost: [amd] }, 'the tag became an artifact');
  const now = { platforms: platforms(both) };
  t.equal(changeOf({ ...compared, isComplete: false, now }), undefined, 'an incomplete comparison');
});
