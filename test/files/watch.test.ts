import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { DirectoryWatcher, type WatchOptions } from '../../src/files/watch.ts';
import { until } from '../serving/support.ts';
import { swapVolume } from './volume.ts';

/** Events alone must do it: a poll would come after the test has given up. */
const byEvents = { pollMs: 600_000, debounceMs: 10 };

/** Counts what is told, and waits (bounded) until nothing new is told or until something new is. */
function listen(t: Test, dirs: string[], options: WatchOptions) {
  let calls = 0;
  const watcher = new DirectoryWatcher(dirs, () => (calls += 1), options);
  t.teardown(() => watcher.close());
  const told = () => calls;
  return {
    watcher,
    calls: told,
    async quiet(): Promise<number> {
      for (let before = -1; before !== told() || before === 0; await pause(60)) before = told();
      return calls;
    },
    /** Waits until an act is told; the act begins when nothing new is told. */
    async tells(what: string, act: () => unknown): Promise<void> {
      const seen = await this.quiet();
      await act();
      await until(what, () => told() > seen);
      t.ok(told() > seen, what);
    },
  };
}

t.test('a file that is written, replaced and removed', async (t) => {
  const dir = t.testdir({ file: 'one' });
  const ear = listen(t, [dir], byEvents);
  await ear.tells('written', () => writeFileSync(join(dir, 'file'), 'two'));
  await ear.tells('replaced', () => {
    writeFileSync(join(dir, 'next'), 'three');
    renameSync(join(dir, 'next'), join(dir, 'file'));
  });
  await ear.tells('removed', () => rmSync(join(dir, 'file')));
});

t.test('each swap of a volume, also after fast ones', async (t) => {
  const dir = t.testdir({});
  swapVolume(dir, { file: 'one' });
  const ear = listen(t, [dir], byEvents);
  await ear.tells('one swap', () => swapVolume(dir, { file: 'two' }));
  for (let swap = 0; swap < 10; swap += 1) {
    swapVolume(dir, { file: 'fast' });
    await turn();
  }
  await ear.tells('a swap after ten fast ones', () => swapVolume(dir, { file: 'last' }));
});

t.test('a directory that appears, vanishes and returns', async (t) => {
  const parent = t.testdir({});
  const dir = join(parent, 'deep', 'dir');
  const ear = listen(t, [dir], byEvents);
  for (const round of ['appeared', 'came back', 'came back again']) {
    await ear.tells(round, () => mkdirSync(dir, { recursive: true }));
    await ear.tells(`${round}: written`, () => writeFileSync(join(dir, 'file'), round));
    await ear.tells(`${round}: removed`, () => rmSync(join(parent, 'deep'), { recursive: true }));
  }
});

t.test('a directory that is replaced by another', async (t) => {
  const parent = t.testdir({ dir: { file: 'old' }, next: { file: 'new' } });
  const dir = join(parent, 'dir');
  const ear = listen(t, [dir], byEvents);
  await ear.tells('replaced', () => {
    renameSync(dir, join(parent, 'away'));
    renameSync(join(parent, 'next'), dir);
  });
  await ear.tells('written', () => writeFileSync(join(dir, 'file'), 'newer'));
});

t.test('links inside a root', async (t) => {
  const root = t.testdir({ real: { file: 'one' } });
  symlinkSync('/real', join(root, 'linked'));
  const ear = listen(t, ['/linked'], { ...byEvents, root });
  await ear.tells('written', () => writeFileSync(join(root, 'real/file'), 'two'));
});

t.test('polling without events', async (t) => {
  const ear = listen(t, [t.testdir({})], { pollMs: 20, debounceMs: 1 });
  await until('polls', () => ear.calls() > 5);
});

t.test('a burst is one change, and a steady stream of events is not delayed forever', async (t) => {
  const dir = t.testdir({ file: '' });
  const ear = listen(t, [dir], { pollMs: 600_000, debounceMs: 40 });
  const seen = await ear.quiet();
  const began = performance.now();
  let writes = 0;
  while (ear.calls() === seen && performance.now() - began < 5000) {
    writeFileSync(join(dir, 'file'), String((writes += 1)));
    await pause(4);
  }
  t.equal(ear.calls(), seen + 1);
  t.ok(writes > 1, `${writes} writes were one change`);
});

t.test('no call after close', async (t) => {
  const dir = t.testdir({ file: '' });
  const ear = listen(t, [dir], { pollMs: 10, debounceMs: 1 });
  await until('a poll', () => ear.calls() > 0);
  await ear.watcher.close();
  const seen = ear.calls();
  writeFileSync(join(dir, 'file'), 'late');
  await pause(60);
  t.equal(ear.calls(), seen);
});

t.test('can be closed at once, and twice', async (t) => {
  const ear = listen(t, [t.testdir({})], byEvents);
  await t.resolves(ear.watcher.close());
  const seen = ear.calls();
  await t.resolves(ear.watcher.close(), 'twice');
  t.equal(ear.calls(), seen);
});
