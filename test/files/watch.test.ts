import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { DirectoryWatcher, type WatchOptions } from '../../src/files/watch.ts';
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
    async more(than: number): Promise<boolean> {
      const deadline = performance.now() + 5000;
      while (told() <= than && performance.now() < deadline) await pause(5);
      return told() > than;
    },
  };
}

t.test('a file that is written, replaced and removed', async (t) => {
  const dir = t.testdir({ file: 'one' });
  const ear = listen(t, [dir], byEvents);
  let seen = await ear.quiet();
  writeFileSync(join(dir, 'file'), 'two');
  t.ok(await ear.more(seen), 'written');
  seen = await ear.quiet();
  writeFileSync(join(dir, 'next'), 'three');
  renameSync(join(dir, 'next'), join(dir, 'file'));
  t.ok(await ear.more(seen), 'replaced');
  seen = await ear.quiet();
  rmSync(join(dir, 'file'));
  t.ok(await ear.more(seen), 'removed');
});

t.test('each swap of a volume, also after fast ones', async (t) => {
  const dir = t.testdir({});
  swapVolume(dir, { file: 'one' });
  const ear = listen(t, [dir], byEvents);
  let seen = await ear.quiet();
  swapVolume(dir, { file: 'two' });
  t.ok(await ear.more(seen), 'one swap');
  for (let swap = 0; swap < 10; swap += 1) {
    swapVolume(dir, { file: 'fast' });
    await turn();
  }
  seen = await ear.quiet();
  swapVolume(dir, { file: 'last' });
  t.ok(await ear.more(seen), 'a swap after ten fast ones');
});

t.test('a directory that appears, vanishes and returns', async (t) => {
  const parent = t.testdir({});
  const dir = join(parent, 'deep', 'dir');
  const ear = listen(t, [dir], byEvents);
  let seen = await ear.quiet();
  for (const round of ['appeared', 'came back', 'came back again']) {
    mkdirSync(dir, { recursive: true });
    t.ok(await ear.more(seen), round);
    seen = await ear.quiet();
    writeFileSync(join(dir, 'file'), round);
    t.ok(await ear.more(seen), `${round}: written`);
    seen = await ear.quiet();
    rmSync(join(parent, 'deep'), { recursive: true });
    t.ok(await ear.more(seen), `${round}: removed`);
    seen = await ear.quiet();
  }
});

t.test('a directory that is replaced by another', async (t) => {
  const parent = t.testdir({ dir: { file: 'old' }, next: { file: 'new' } });
  const dir = join(parent, 'dir');
  const ear = listen(t, [dir], byEvents);
  let seen = await ear.quiet();
  renameSync(dir, join(parent, 'away'));
  renameSync(join(parent, 'next'), dir);
  t.ok(await ear.more(seen), 'replaced');
  seen = await ear.quiet();
  writeFileSync(join(dir, 'file'), 'newer');
  t.ok(await ear.more(seen), 'written');
});

t.test('links inside a root', async (t) => {
  const root = t.testdir({ real: { file: 'one' } });
  symlinkSync('/real', join(root, 'linked'));
  const ear = listen(t, ['/linked'], { ...byEvents, root });
  const seen = await ear.quiet();
  writeFileSync(join(root, 'real/file'), 'two');
  t.ok(await ear.more(seen));
});

t.test('polling without events', async (t) => {
  const ear = listen(t, [t.testdir({})], { pollMs: 20, debounceMs: 1 });
  t.ok(await ear.more(5));
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
  await ear.more(0);
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
