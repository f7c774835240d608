import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import {
  FileError,
  decodeUtf8,
  listDirectory,
  readBounded,
  writeProblem,
  type FileErrorCode,
} from '../../src/files/read.ts';

const dir = t.testdir({ plain: 'hello', empty: '', five: '12345', folder: { b: '', a: '', B: '' } });

async function code(promise: Promise<unknown>): Promise<FileErrorCode | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    if (error instanceof FileError) return error.code;
    throw error;
  }
}

t.test('regular files are read up to the limit', async (t) => {
  t.equal((await readBounded(join(dir, 'plain'), { maxBytes: 100 })).toString(), 'hello');
  t.equal((await readBounded(join(dir, 'empty'), { maxBytes: 0 })).length, 0);
  t.equal((await readBounded(join(dir, 'five'), { maxBytes: 5 })).toString(), '12345');
  t.equal(await code(readBounded(join(dir, 'five'), { maxBytes: 4 })), 'too-large');
});

t.test('files of several chunks are read', async (t) => {
  const long = Buffer.alloc(200_000, 'abc');
  writeFileSync(join(dir, 'long'), long);
  t.ok((await readBounded(join(dir, 'long'), { maxBytes: 200_000 })).equals(long));
  t.equal(await code(readBounded(join(dir, 'long'), { maxBytes: 199_999 })), 'too-large');
});

t.test('files without a size are read, devices are refused', async (t) => {
  t.ok((await readBounded('/proc/self/status', { maxBytes: 100_000 })).length > 0);
  t.equal(await code(readBounded('/dev/zero', { maxBytes: 100 })), 'not-a-file');
});

t.test('other kinds of files are refused', async (t) => {
  execFileSync('mkfifo', [join(dir, 'fifo')]);
  symlinkSync('loop', join(dir, 'loop'));
  const server = createServer().listen(join(dir, 'socket'));
  t.teardown(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const cases: [string, FileErrorCode][] = [
    ['folder', 'not-a-file'],
    ['fifo', 'not-a-file'],
    ['socket', 'not-a-file'],
    ['nothing', 'missing'],
    ['plain/below', 'missing'],
    ['loop', 'unreadable'],
    ['a'.repeat(300), 'unreadable'],
    ['nul\0byte', 'unreadable'],
  ];
  for (const [name, expected] of cases) {
    t.equal(await code(readBounded(join(dir, name), { maxBytes: 100 })), expected, name);
  }
});

t.test('errors have the path', async (t) => {
  const path = join(dir, 'nothing');
  await t.rejects(readBounded(path, { maxBytes: 1 }), {
    name: 'FileError',
    where: path,
    message: `${path}: there is no such file`,
  });
});

t.test('symbolic links stay inside the root', async (t) => {
  const root = t.testdir({ etc: { real: 'inside' }, lib: {} });
  symlinkSync('/etc/real', join(root, 'lib/link'));
  symlinkSync('../../../../etc/passwd', join(root, 'lib/out'));
  symlinkSync('/etc', join(root, 'lib/dir'));
  t.equal((await readBounded('/lib/link', { root, maxBytes: 100 })).toString(), 'inside');
  t.equal((await readBounded('/lib/dir/real', { root, maxBytes: 100 })).toString(), 'inside');
  t.equal(await code(readBounded('/lib/out', { root, maxBytes: 100 })), 'escapes-root');
  t.equal(await code(readBounded('/lib/none', { root, maxBytes: 100 })), 'missing');
  t.strictSame(await listDirectory('/lib/dir', { root, maxEntries: 10 }), ['real']);
});

t.test('names are listed in bytewise order, up to a limit', async (t) => {
  t.strictSame(await listDirectory(join(dir, 'folder'), { maxEntries: 3 }), ['B', 'a', 'b']);
  t.equal(await code(listDirectory(join(dir, 'folder'), { maxEntries: 2 })), 'too-large');
  t.equal(await code(listDirectory(join(dir, 'none'), { maxEntries: 2 })), 'missing');
  mkdirSync(join(dir, 'hollow'));
  t.strictSame(await listDirectory(join(dir, 'hollow'), { maxEntries: 0 }), []);
});

t.test('invalid UTF-8 is an error', async (t) => {
  t.equal(decodeUtf8(Buffer.from('é€😀'), 'x'), 'é€😀');
  t.equal(decodeUtf8(Buffer.from('\u{feff}a'), 'x'), 'a');
  for (const bytes of [[0xff], [0x61, 0xe9], [0x61, 0xef, 0xbf], [0xc3, 0xa9, 0xed, 0xa0, 0x80]])
    t.throws(() => decodeUtf8(Buffer.from(bytes), 'the-file'), {
      code: 'not-text',
      where: 'the-file',
      message: 'the-file: is not UTF-8 text',
    });
});

t.test('the reason of a failed write', async (t) => {
  const denied = Object.assign(new Error('denied'), { code: 'EACCES' });
  t.equal(writeProblem(denied), 'may not be written; check its owner and mode');
});
