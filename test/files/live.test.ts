import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { liveContent, type LiveContentOptions } from '../../src/files/live.ts';
import { decodeUtf8, readBounded } from '../../src/files/read.ts';
import { until } from '../support/until.ts';
import { manualRefresh } from '../support/manual-refresh.ts';
import { like } from '../support/like.ts';
import { swapVolume } from './volume.ts';

const byEvents = { pollMs: 600_000, debounceMs: 5 };

/** A document with its own length, so that a partial one is recognized. */
function parse(text: string): string {
  const [length, body] = text.split(':');
  if (Number(length) !== body?.length) throw new Error(`half-written: ${text}`);
  return body;
}

async function live(t: Test, path: string, options: Partial<LiveContentOptions<string>> = {}) {
  const reports: string[] = [];
  const content = await liveContent({
    read: async () => parse(decodeUtf8(await readBounded(path, { maxBytes: 1000 }), path)),
    fingerprint: (value) => value,
    dirs: [join(path, '..')],
    onChange: (value) => reports.push(value),
    onProblem: (problem) => reports.push(`! ${problem.message.replace(path, 'FILE')}`),
    ...byEvents,
    ...options,
  });
  t.teardown(() => content.close());
  return { content, reports };
}

t.test('the first value is read, then changes are reported', async (t) => {
  const path = join(t.testdir({ file: '3:one' }), 'file');
  const { content, reports } = await live(t, path);
  t.equal(content.current(), 'one');
  t.strictSame(reports, []);
  writeFileSync(path, '3:two');
  await until(() => content.current() === 'two', 'the last one');
  t.strictSame(reports.at(-1), 'two');
});

t.test('each volume swap and each replaced file is noticed by its events', async (t) => {
  const dir = t.testdir({});
  swapVolume(dir, { file: '3:one' });
  const { content } = await live(t, join(dir, 'file'));
  for (const text of ['two', 'three', 'four']) {
    swapVolume(dir, { file: `${text.length}:${text}` });
    await until(() => content.current() === text, text);
  }
  writeFileSync(join(dir, 'next'), '3:new');
  renameSync(join(dir, 'next'), join(dir, 'file'));
  await until(() => content.current() === 'new', 'replaced');
});

t.test('changes without events are noticed by polls', async (t) => {
  const root = t.testdir({ real: { file: '3:one' } });
  symlinkSync('real', join(root, 'linked'));
  const { content } = await live(t, join(root, 'linked/file'), { pollMs: 20, debounceMs: 600_000 });
  writeFileSync(join(root, 'real/file'), '3:two');
  await until(() => content.current() === 'two', 'a poll');
});

t.test('a steady stream of events is a few reads', async (t) => {
  const path = join(t.testdir({ file: '3:one' }), 'file');
  let reads = 0;
  const { content } = await live(t, path, { onRead: () => (reads += 1), debounceMs: 20 });
  const began = performance.now();
  for (let writes = 0; content.current() !== 'end'; writes += 1) {
    writeFileSync(path, writes < 20 ? '3:mid' : '3:end');
    await pause(10);
  }
  t.ok(reads <= 3 + (performance.now() - began) / 200, `${reads} reads`);
});

t.test('directories that were found by reading are watched too', async (t) => {
  const root = t.testdir({ dir: {}, found: { file: '3:one' } });
  const path = join(root, 'found/file');
  const { content } = await live(t, path, {
    dirs: [join(root, 'dir')],
    dirsOf: () => [join(root, 'found')],
  });
  // The start of a watch is a reason to read too.
  for (const text of ['two', 'three', 'four']) {
    writeFileSync(path, `${text.length}:${text}`);
    await until(() => content.current() === text, text);
  }
});

t.test('a half-written file keeps the last good value, and is reported once', async (t) => {
  const path = join(t.testdir({ file: '3:one' }), 'file');
  const { content, reports } = await live(t, path, manualRefresh);
  writeFileSync(path, '5:th');
  await content.refresh();
  await content.refresh();
  t.equal(content.current(), 'one');
  like(t, content.problem(), { message: 'half-written: 5:th' });
  t.strictSame(reports, ['! half-written: 5:th']);
  writeFileSync(path, '5:three');
  await content.refresh();
  t.equal(content.current(), 'three');
  t.equal(content.problem(), undefined);
  writeFileSync(path, '5:th');
  await content.refresh();
  t.strictSame(
    reports,
    ['! half-written: 5:th', 'three', '! half-written: 5:th'],
    'a problem that returns is reported again',
  );
});

t.test('an equal value is not a change', async (t) => {
  const path = join(t.testdir({ file: '3:one' }), 'file');
  const { content, reports } = await live(t, path, manualRefresh);
  writeFileSync(path, '3:one');
  await content.refresh();
  t.strictSame(reports, []);
});

t.test('a file that appears, disappears and returns is reported', async (t) => {
  const parent = t.testdir({});
  const path = join(parent, 'dir', 'file');
  // A directory that returns has no event.
  const { content, reports } = await live(t, path, { pollMs: 20 });
  t.equal(content.current(), undefined);
  like(t, content.problem(), { code: 'missing' });
  mkdirSync(join(parent, 'dir'));
  writeFileSync(path, '3:one');
  await until(() => content.current() === 'one', 'appears');
  rmSync(join(parent, 'dir'), { recursive: true });
  await until(() => content.problem() !== undefined, 'vanishes');
  t.equal(content.current(), 'one');
  mkdirSync(join(parent, 'dir'));
  writeFileSync(path, '3:two');
  await until(() => content.current() === 'two', 'returns');
  const missing = '! FILE: there is no such file';
  const partial = '! half-written: ';
  t.strictSame(
    reports.filter((line) => line !== partial),
    [missing, 'one', missing, 'two'],
  );
});

t.test('reads do not overlap; a change during a read causes another', async (t) => {
  let running = 0;
  let most = 0;
  let source = 'a';
  const { content } = await live(t, join(t.testdir({}), 'none'), {
    async read() {
      running += 1;
      most = Math.max(most, running);
      const seen = source;
      await pause(5);
      running -= 1;
      return seen;
    },
  });
  const first = content.refresh();
  await pause(2);
  source = 'b';
  await Promise.all([first, content.refresh(), content.refresh()]);
  t.equal(content.current(), 'b');
  t.equal(most, 1);
});

t.test('a thrown value that is not an Error is a problem', async (t) => {
  const { content } = await live(t, join(t.testdir({}), 'none'), {
    // eslint-disable-next-line typescript/only-throw-error
    read: () => Promise.reject('just text'),
  });
  like(t, content.problem(), { message: 'just text' });
});

t.test('no read after close', async (t) => {
  const path = join(t.testdir({ file: '3:one' }), 'file');
  const { content, reports } = await live(t, path);
  await content.close();
  writeFileSync(path, '3:two');
  await content.refresh();
  t.equal(content.current(), 'one');
  t.strictSame(reports, []);
});
