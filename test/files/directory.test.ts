import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { readDirectory, type DirectoryOptions } from '../../src/files/directory.ts';
import { FileError } from '../../src/files/read.ts';
import { swapVolume } from './volume.ts';

const limits: DirectoryOptions = { wanted: (name) => name.endsWith('.toml'), maxEntries: 10, maxBytes: 10 };

async function read(dir: string, options: Partial<DirectoryOptions> = {}): Promise<[string, string][]> {
  const files = await readDirectory(dir, { ...limits, ...options });
  return [...files].map(([name, content]) => [
    name,
    content instanceof FileError ? content.code : content.toString(),
  ]);
}

t.test('selected files are read in order, with errors for unreadable ones', async (t) => {
  const dir = t.testdir({
    'b.toml': 'b',
    'a.toml': 'a',
    'other.txt': '',
    '.hidden.toml': '',
    'dir.toml': {},
  });
  writeFileSync(join(dir, 'long.toml'), 'x'.repeat(11));
  symlinkSync('nowhere', join(dir, 'link.toml'));
  t.strictSame(await read(dir), [
    ['a.toml', 'a'],
    ['b.toml', 'b'],
    ['dir.toml', 'not-a-file'],
    ['link.toml', 'missing'],
    ['long.toml', 'too-large'],
  ]);
});

t.test('a directory that cannot be read is an error', async (t) => {
  const dir = t.testdir({ file: '', many: { a: '', b: '' }, odd: { '..data': 'a file' } });
  await t.rejects(read(join(dir, 'none')), { code: 'missing' });
  await t.rejects(read(join(dir, 'file')), { code: 'missing' });
  await t.rejects(read(join(dir, 'many'), { maxEntries: 1 }), { code: 'too-large' });
  t.strictSame(await read(join(dir, 'odd')), []);
});

t.test('symbolic links stay inside the root', async (t) => {
  const root = t.testdir({ real: { 'a.toml': 'a' }, lib: {} });
  symlinkSync('/real', join(root, 'link'));
  symlinkSync('../../..', join(root, 'lib', 'out'));
  t.strictSame(await read('/link', { root }), [['a.toml', 'a']]);
  await t.rejects(read('/lib/out', { root }), { code: 'escapes-root' });
});

t.test('files of two volume generations are never mixed', async (t) => {
  const dir = t.testdir({});
  swapVolume(dir, { 'a.toml': '0', 'b.toml': '0' });
  const swapping = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
     import(workerData.volume).then(async ({ swapVolume }) => {
       for (let v = 1; v <= 60; v += 1) {
         swapVolume(workerData.dir, { 'a.toml': String(v), 'b.toml': String(v) });
         await new Promise((resolve) => setTimeout(resolve, 5));
       }
       parentPort.postMessage('done');
     });`,
    { eval: true, workerData: { dir, volume: new URL('volume.ts', import.meta.url).href } },
  );
  const done = new Promise<void>((resolve, reject) => {
    swapping.once('message', () => resolve());
    swapping.once('error', reject);
  });
  let running = true;
  void done.finally(() => (running = false));
  const isRunning = () => running;
  const mixed: unknown[] = [];
  let reads = 0;
  while (isRunning()) {
    const files = await read(dir).catch((error: unknown) => {
      // An error is fine too, a mixture is not.
      if (error instanceof FileError && error.code === 'unreadable') return [];
      throw error;
    });
    reads += 1;
    if (files[0]?.[1] !== files[1]?.[1]) mixed.push(files);
  }
  await done;
  await swapping.terminate();
  t.strictSame(mixed, [], `${reads} readings`);
  t.strictSame(await read(dir), [
    ['a.toml', '60'],
    ['b.toml', '60'],
  ]);
});

t.test('an empty directory has no files', async (t) => {
  const dir = t.testdir({});
  mkdirSync(join(dir, 'sub'));
  t.strictSame(await read(dir), []);
});
