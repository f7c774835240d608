import t from 'tap';
import type { Attempt } from '../../../src/registry/manifest-lookup.ts';
import { bench, day, digestOf, facts, failure, hour, question, settled, taught } from '../support.ts';

const nginx = question('nginx:1.25');

function patience(): AbortSignal {
  return new AbortController().signal;
}

t.test('concurrent askers share one request; each gets the image as it wrote it', async (t) => {
  const { memory, inspector } = bench();
  const asked = ['nginx:1.25', 'docker.io/nginx:1.25', 'nginx:1.25'].map((image) =>
    memory.lookup(question(image), { signal: patience() }),
  );
  await settled();
  t.equal(inspector.asked.length, 1);
  await inspector.last().answer(facts('nginx:1.25'));
  t.same(
    (await Promise.all(asked)).map(({ image, digest }) => [image, digest]),
    [
      ['nginx:1.25', digestOf('nginx:1.25')],
      ['docker.io/nginx:1.25', digestOf('nginx:1.25')],
      ['nginx:1.25', digestOf('nginx:1.25')],
    ],
  );
});

t.test('ask answers from memory where it can', async (t) => {
  const { memory, inspector } = await taught(nginx);
  t.match(await memory.lookup(nginx, { signal: patience() }), { source: 'memory' });
  t.equal(inspector.asked.length, 1);
});

t.test('who has no time left leaves; the request goes on and the next one finds its answer', async (t) => {
  const { memory, inspector } = bench();
  const controller = new AbortController();
  const reason = new Error('no time left');
  const impatient = t.rejects(memory.lookup(nginx, { signal: controller.signal }), reason);
  await settled();
  controller.abort(reason);
  await impatient;
  t.equal(inspector.last().options.signal.aborted, false);
  await t.rejects(memory.lookup(nginx, { signal: controller.signal }), reason, 'nor does it start one');
  await inspector.last().answer(facts('nginx:1.25'));
  t.ok(memory.recall(nginx));
  t.equal(inspector.asked.length, 1);
});

t.test('a request has a time limit of its own, also where the inspector ignores it', async (t) => {
  const { memory, inspector, time } = bench({ lookupTimeoutMs: 3000 });
  const answer = memory.lookup(nginx, { signal: patience() });
  await settled();
  await time.advance(3000);
  t.match(await answer, { platforms: [], error: { code: 'timeout', message: 'not answered within 3 s' } });
  t.ok(inspector.last().options.signal.aborted);
  t.match(memory.recall(nginx), { error: { code: 'timeout' } });
  await inspector.last().answer(facts('nginx:1.25'));
  t.match(memory.recall(nginx), { error: { code: 'timeout' } }, 'what comes late is too late');
});

t.test('an inspector that throws is a fault of ours: logged, answered, backed off from', async (t) => {
  const { memory, inspector, lines } = bench();
  const answer = memory.lookup(nginx, { signal: patience() });
  await settled();
  await inspector.last().fail(new TypeError('undefined is not a function'));
  t.match(await answer, { error: { code: 'unavailable' } });
  t.match(lines, [{ msg: 'inspecting an image failed unexpectedly' }]);
  t.match(memory.recall(nginx), { error: { code: 'unavailable' } });
});

t.test('an answer without digest and without error is none', async (t) => {
  const { memory, teach } = bench();
  const { digest: _, ...answer } = facts('nginx:1.25');
  await teach(nginx, answer);
  t.match(memory.recall(nginx), { platforms: [], error: { code: 'not-an-image' } });
});

t.test('trace hears what this asker caused', async (t) => {
  const { memory, inspector } = bench();
  const heard: string[] = [];
  const trace = ({ url }: Attempt): void => {
    heard.push(url);
  };
  const first = memory.lookup(nginx, { signal: patience(), trace });
  const second = memory.lookup(nginx, { signal: patience(), trace });
  await settled();
  inspector.last().options.trace?.({
    method: 'GET',
    url: 'https://registry-1.docker.io/v2/library/nginx/manifests/1.25',
    purpose: 'manifest',
    credential: 'anonymous',
    status: 200,
    durationMs: 12,
  });
  await inspector.last().answer(facts('nginx:1.25'));
  await Promise.all([first, second]);
  t.equal(heard.length, 1);
});

t.test('an agent’s own memory: the age of its facts is theirs, not ours', async (t) => {
  const { memory, inspector, time, teach } = bench();
  const old = { source: 'memory', freshUntil: '2026-11-21T12:05:00.000Z' } as const;
  await teach(nginx, facts('nginx:1.25', old));
  await time.advance(5 * 60_000 - 1);
  memory.recall(nginx);
  t.equal(inspector.asked.length, 1);
  await time.advance(1);
  memory.recall(nginx);
  t.equal(inspector.asked.length, 2, 'due when the agent’s are');
  await inspector.last().answer(facts('nginx:1.25', old));
  t.ok(memory.recall(nginx));
  t.equal(inspector.asked.length, 2, 'the agent knows no better yet: not asked again at once');
  await time.advance(1000);
  memory.recall(nginx);
  t.equal(inspector.asked.length, 3);
});

t.test('an agent that answers stale facts is as good as one that fails', async (t) => {
  const { memory, inspector, time, teach } = bench();
  const stale = facts('nginx:1.25', { stale: true, source: 'memory', freshUntil: '2026-11-10T12:00:00Z' });
  t.match(await teach(nginx, stale), { stale: true });
  t.match(memory.recall(nginx), { stale: true, digest: digestOf('nginx:1.25') });
  t.equal(inspector.asked.length, 1);
  await time.advance(1000);
  t.equal(memory.recall(nginx), undefined);
});

t.test('older facts never replace newer ones', async (t) => {
  const { memory, time } = await taught(nginx);
  const older = { digest: digestOf('older'), source: 'memory', freshUntil: '2026-11-21T12:14:59Z' } as const;
  memory.learn(facts('nginx:1.25', older));
  t.equal(memory.recall(nginx)?.digest, digestOf('nginx:1.25'));
  await time.advance(60_000);
  memory.learn(facts('nginx:1.25', { ...older, freshUntil: '2026-11-21T12:15:01Z' }));
  t.equal(memory.recall(nginx)?.digest, digestOf('older'));
});

t.test('learning from others', async (t) => {
  const { memory, inspector } = bench();
  const known = { source: 'memory' } as const;
  memory.learn(facts('nginx:1.25', { ...known, freshUntil: '2200-01-01T00:00:00Z' }));
  memory.learn(failure('redis', 'not-found'));
  memory.learn({ ...facts('nginx', known), image: 'no such reference!' });
  memory.learn(facts('busybox', { ...known, source: 'override' }));
  memory.learn(facts('alpine', { ...known, freshUntil: 'tomorrow' }));
  t.match(
    memory.recall(nginx),
    { freshUntil: '2026-11-21T12:15:00.000Z' },
    'a date ahead of our clock counts as now',
  );
  for (const image of ['redis', 'busybox', 'alpine'])
    t.equal(memory.recall(question(image)), undefined, image);
  t.match(memory.lastKnown(question('alpine')), { stale: true });
  t.same(
    [...memory.shared()].map(({ image }) => image),
    ['docker.io/library/nginx:1.25', 'docker.io/library/alpine:latest'],
  );
  t.equal(inspector.asked.length, 0);
});

t.test('shared facts can be learned by another memory', async (t) => {
  const from = bench();
  await from.teach(nginx, facts('nginx:1.25'));
  await from.teach(question(`redis@${digestOf('r')}`), facts(`redis@${digestOf('r')}`));
  const to = bench();
  for (const one of from.memory.shared()) to.memory.learn(one);
  t.match(to.memory.recall(nginx), { platforms: [{}, {}], stale: false });
  t.match(to.memory.recall(question(`redis@${digestOf('r')}`)), { stale: false });
  t.same([...to.memory.shared()], [...from.memory.shared()]);
});

t.test('at most so many revalidations at a time; questions that somebody waits for go first', async (t) => {
  const { memory, inspector, time } = bench();
  const images = Array.from({ length: 200 }, (_, index) => question(`app-${index}`));
  for (const { image } of images) memory.learn(facts(image, { source: 'memory' }));
  await time.advance(hour);
  for (const one of images) memory.recall(one);
  t.equal(inspector.asked.length, 171);
  void memory.lookup(question('new'), { signal: patience() });
  await settled();
  t.equal(inspector.asked.length, 172);
  for (const asked of inspector.asked) await asked.answer(facts(asked.question.image));
  for (const one of images) memory.recall(one);
  t.equal(inspector.asked.length, 172 + 29, 'later recalls start the others');
});

t.test('a flood of questions is cut off', async (t) => {
  const { memory, inspector } = bench();
  const answers = Array.from({ length: 4100 }, (_, index) =>
    memory.lookup(question(`app-${index}`), { signal: patience() }),
  );
  t.match(
    await Promise.all(answers.slice(4096)),
    Array.from({ length: 4 }, () => ({ error: { code: 'rate-limited' } })),
  );
  t.equal(inspector.asked.length, 171, 'a namespace has a share of the places; the others wait');
  t.equal(memory.recall(question('app-4099')), undefined, 'and that is no failure to remember');
  await memory.close();
});

t.test('close answers who waits, remembers nothing of it, and asks nobody any more', async (t) => {
  const { memory, inspector, time } = await taught(nginx);
  const waiting = memory.lookup(question('redis'), { signal: patience() });
  await settled();
  await memory.close();
  t.match(await waiting, { error: { code: 'unavailable', message: 'the program is ending' } });
  t.ok(inspector.last().options.signal.aborted);
  t.equal(memory.recall(question('redis')), undefined);
  await time.advance(day);
  t.ok(memory.recall(nginx));
  t.equal(inspector.asked.length, 2);
  t.match(await memory.lookup(question('redis'), { signal: patience() }), { error: { code: 'unavailable' } });
  t.equal(time.pending, 0);
});
