import t from 'tap';
import { glob } from '../../../../daemon/containerd/config/glob.ts';
import { NodeFiles } from '../../../../daemon/node-files.ts';
import { writeFiles } from '../../../support/write-files.ts';

const names = [
  '/d/a.toml',
  '/d/b.toml',
  '/d/ab.toml',
  '/d/.c.toml',
  '/d/[x].toml',
  '/d/é☃.toml',
  '/e/a.toml',
  '/e/d/a.toml',
];

const cases: [pattern: string, found: string[]][] = [
  ['/d/*.toml', ['/d/.c.toml', '/d/[x].toml', '/d/a.toml', '/d/ab.toml', '/d/b.toml', '/d/é☃.toml']],
  ['/d/?.toml', ['/d/a.toml', '/d/b.toml']],
  ['/d/??.toml', ['/d/.c.toml', '/d/ab.toml', '/d/é☃.toml']],
  ['/d/[ab]*', ['/d/a.toml', '/d/ab.toml', '/d/b.toml']],
  ['/d/[^ab]*', ['/d/.c.toml', '/d/[x].toml', '/d/é☃.toml']],
  ['/d/[a-a].*', ['/d/a.toml']],
  ['/d/\\[x\\]*', ['/d/[x].toml']],
  ['/*/a.toml', ['/d/a.toml', '/e/a.toml']],
  ['/e/*/*.toml', ['/e/d/a.toml']],
  ['/d/***.toml', ['/d/.c.toml', '/d/[x].toml', '/d/a.toml', '/d/ab.toml', '/d/b.toml', '/d/é☃.toml']],
  ['/none/*', []],
  ['/d/a.toml/*', []],
  ['/d/(a|b)*', []],
  ['/d/[\\ab].toml', ['/d/a.toml', '/d/b.toml']],
  ['/d/a', []],
];
for (const [pattern, found] of cases) {
  t.test(`the pattern ${pattern}`, async (t) => {
    const root = t.testdir();
    writeFiles(root, Object.fromEntries(names.map((name) => [name, ''])));
    t.strictSame(await glob(pattern, new NodeFiles(root)), found);
  });
}

t.test('malformed patterns are refused', async (t) => {
  const root = t.testdir({ d: { a: '' } });
  for (const pattern of ['/d/[', '/d/[a', '/d/[]', '/d/[]a]', '/d/[-a]', '/d/[a-]', '/d/[b-a]', '/d/\\']) {
    await t.rejects(
      glob(pattern, new NodeFiles(root)),
      { name: 'InvalidConfig', message: /syntax error/ },
      pattern,
    );
  }
});

t.test('too many matches are refused', async (t) => {
  const root = t.testdir();
  writeFiles(root, Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`/d/${index}`, ''])));
  await t.rejects(glob('/d/*', new NodeFiles(root)), /matches more than 200 files/);
  t.equal((await glob('/d/[^0]*', new NodeFiles(root))).length, 200);
});
