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
  readDirectory,
  type DirectoryOptions,
  resolveInRoot,
} from '../../src/files/read.ts';

const base = t.testdir({
  files: { plain: 'hello', empty: '', five: '12345', folder: { b: '', a: '', B: '' } },
  root: { etc: { containerd: { 'config.toml': '' } }, var: { lib: {} } },
});
const [dir, root] = [join(base, 'files'), join(base, 'root')];

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
  symlinkSync('round', join(dir, 'round'));
  await t.rejects(readBounded(join(dir, 'round'), { maxBytes: 1 }), { message: /too many symbolic links$/ });
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

symlinkSync('/etc', join(root, 'absolute'));
symlinkSync('../etc/containerd', join(root, 'var/relative'));
symlinkSync('../../../etc', join(root, 'var/escape'));
symlinkSync('/../etc', join(root, 'var/above'));
symlinkSync('circle-b', join(root, 'circle-a'));
symlinkSync('circle-a', join(root, 'circle-b'));
symlinkSync('/', join(root, 'self'));
mkdirSync(join(root, 'var/lib/..v1'));
writeFileSync(join(root, 'var/lib/..v1/file'), '');
symlinkSync('..v1', join(root, 'var/lib/..data'));
symlinkSync('..data/file', join(root, 'var/lib/file'));
for (let link = 0; link < 41; link += 1) {
  symlinkSync(link === 0 ? 'etc' : `chain-${link - 1}`, join(root, `chain-${link}`));
}

const resolved: [string, string][] = [
  ['/', ''],
  ['', ''],
  ['/etc/containerd', 'etc/containerd'],
  ['etc//./containerd/', 'etc/containerd'],
  ['/etc/../var', 'var'],
  ['/absolute/containerd/config.toml', 'etc/containerd/config.toml'],
  ['/var/relative/config.toml', 'etc/containerd/config.toml'],
  ['/self/self/etc', 'etc'],
  ['/var/lib/file', 'var/lib/..v1/file'],
  ['/chain-39', 'etc'],
];

for (const [path, expected] of resolved) {
  t.test(`resolves ${path || '(nothing)'}`, async (t) => {
    t.equal(await resolveInRoot(root, path), join(root, expected));
  });
}

const refused: [string, string][] = [
  ['/..', 'escapes-root'],
  ['/etc/../..', 'escapes-root'],
  ['/var/escape', 'escapes-root'],
  ['/var/above', 'escapes-root'],
  ['/circle-a', 'unreadable'],
  ['/chain-40', 'unreadable'],
  ['/none', 'missing'],
  ['/etc/containerd/config.toml/below', 'missing'],
];

for (const [path, code] of refused) {
  t.test(`refuses ${path} as ${code}`, async (t) => {
    await t.rejects(resolveInRoot(root, path), { name: 'FileError', code, where: path });
  });
}

t.test('the root `/` changes no path', async (t) => {
  t.equal(await resolveInRoot('/', '/proc/'), '/proc');
});
