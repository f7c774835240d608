import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { DirectoryWatcher, type WatchOptions } from '../../src/files/watch.ts';
import { until } from '../support/until.ts';
import { swapVolume } from './volume.ts';

/** Only events can report a change: the first poll comes after the timeout of the test. */
const byEvents = { pollMs: 600_000, debounceMs: 10 };

/** A watcher that counts its reports, and waits until they end or the next one comes. */
function watch(t: Test, dirs: string[], options: WatchOptions) {
  let calls = 0;
  /** Longer than a report can come after its event. */
  const quietMs = 40 + 2 * (options.debounceMs ?? 0);
  const watcher = new DirectoryWatcher(dirs, () => (calls += 1), options);
  t.teardown(() => watcher.close());
  const count = () => calls;
  return {
    watcher,
    calls: count,
    /** Waits until the first reports have ended; returns their number. */
    async quiet(): Promise<number> {
      for (let before = -1; before !== count() || before === 0; await pause(quietMs)) before = count();
      return calls;
    },
    /** Makes a change after all earlier reports, and waits until it is reported. */
    async reports(what: string, change: () => unknown): Promise<void> {
      const before = await this.quiet();
      await change();
      await t.resolves(
        until(() => count() > before, what),
        what,
      );
    },
  };
}

t.test('writing, replacing and removing a file is reported', async (t) => {
  const dir = t.testdir({ file: 'one' });
  const watched = watch(t, [dir], byEvents);
  await watched.reports('written', () => writeFileSync(join(dir, 'file'), 'two'));
  await watched.reports('replaced', () => {
    writeFileSync(join(dir, 'next'), 'three');
    renameSync(join(dir, 'next'), join(dir, 'file'));
  });
  await watched.reports('removed', () => rmSync(join(dir, 'file')));
});

t.test('each volume swap is reported, also after fast ones', async (t) => {
  const dir = t.testdir({});
  swapVolume(dir, { file: 'one' });
  const watched = watch(t, [dir], byEvents);
  await watched.reports('one swap', () => swapVolume(dir, { file: 'two' }));
  for (let swap = 0; swap < 10; swap += 1) {
    swapVolume(dir, { file: 'fast' });
    await turn();
  }
  await watched.reports('a swap after ten fast ones', () => swapVolume(dir, { file: 'last' }));
});

t.test('a directory that appears, disappears and returns is reported', async (t) => {
  const parent = t.testdir({});
  const dir = join(parent, 'deep', 'dir');
  const watched = watch(t, [dir], byEvents);
  for (const round of ['appeared', 'came back', 'came back again']) {
    await watched.reports(round, () => mkdirSync(dir, { recursive: true }));
    await watched.reports(`${round}: written`, () => writeFileSync(join(dir, 'file'), round));
    await watched.reports(`${round}: removed`, () => rmSync(join(parent, 'deep'), { recursive: true }));
  }
});

t.test('replacing a directory is reported', async (t) => {
  const parent = t.testdir({ dir: { file: 'old' }, next: { file: 'new' } });
  const dir = join(parent, 'dir');
  const watched = watch(t, [dir], byEvents);
  await watched.reports('replaced', () => {
    renameSync(dir, join(parent, 'away'));
    renameSync(join(parent, 'next'), dir);
  });
  await watched.reports('written', () => writeFileSync(join(dir, 'file'), 'newer'));
});

t.test('changes of symbolic links inside a root are reported', async (t) => {
  const root = t.testdir({ real: { file: 'one' } });
  symlinkSync('/real', join(root, 'linked'));
  const watched = watch(t, ['/linked'], { ...byEvents, root });
  await watched.reports('written', () => writeFileSync(join(root, 'real/file'), 'two'));
});

t.test('without events polling reports changes', async (t) => {
  const watched = watch(t, [t.testdir({})], { pollMs: 20, debounceMs: 1 });
  await until(() => watched.calls() > 5, 'polls');
});

t.test('a burst is one change, and a steady stream of events is reported in time', async (t) => {
  const dir = t.testdir({ file: '' });
  const watched = watch(t, [dir], { pollMs: 600_000, debounceMs: 200 });
  const seen = await watched.quiet();
  const began = performance.now();
  let writes = 0;
  while (watched.calls() === seen && performance.now() - began < 20_000) {
    writeFileSync(join(dir, 'file'), String((writes += 1)));
    await pause(4);
  }
  t.equal(watched.calls(), seen + 1);
  t.ok(writes > 1, `${writes} writes were one change`);
});

t.test('no call after close', async (t) => {
  const dir = t.testdir({ file: '' });
  const watched = watch(t, [dir], { pollMs: 10, debounceMs: 1 });
  await until(() => watched.calls() > 0, 'a poll');
  await watched.watcher.close();
  const seen = watched.calls();
  writeFileSync(join(dir, 'file'), 'late');
  await pause(60);
  t.equal(watched.calls(), seen);
});

t.test('close works immediately, and twice', async (t) => {
  const watched = watch(t, [t.testdir({})], byEvents);
  await t.resolves(watched.watcher.close());
  const seen = watched.calls();
  await t.resolves(watched.watcher.close(), 'twice');
  t.equal(watched.calls(), seen);
});
