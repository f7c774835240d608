import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { FileError, readDirectory, type DirectoryOptions } from '../../src/files/read.ts';

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
  const dir = t.testdir({ file: '', many: { a: '', b: '' } });
  await t.rejects(read(join(dir, 'none')), { code: 'missing' });
  await t.rejects(read(join(dir, 'file')), { code: 'missing' });
  await t.rejects(read(join(dir, 'many'), { maxEntries: 1 }), { code: 'too-large' });
});

t.test('symbolic links stay inside the root', async (t) => {
  const root = t.testdir({ real: { 'a.toml': 'a' }, lib: {} });
  symlinkSync('/real', join(root, 'link'));
  symlinkSync('../../..', join(root, 'lib', 'out'));
  t.strictSame(await read('/link', { root }), [['a.toml', 'a']]);
  await t.rejects(read('/lib/out', { root }), { code: 'escapes-root' });
});

t.test('an empty directory has no files', async (t) => {
  const dir = t.testdir({});
  mkdirSync(join(dir, 'sub'));
  t.strictSame(await read(dir), []);
});
