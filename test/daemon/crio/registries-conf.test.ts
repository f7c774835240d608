/** The rules of the file. `npm run vectors` compares many more cases with the library of CRI-O. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { defaultCrioConf, type CrioConf } from '../../../daemon/crio/crio-conf.ts';
import { loadRegistries } from '../../../daemon/crio/load-registries.ts';
import { parseRegistriesConf } from '../../../daemon/crio/registries-conf.ts';
import { like } from '../../support/like.ts';
import { writeFiles } from '../../support/write-files.ts';

const registry = (...lines: readonly string[]): string => `[[registry]]\n${lines.join('\n')}\n`;
const mirror = (...lines: readonly string[]): string =>
  `${registry('location = "a.test"')}[[registry.mirror]]\n${lines.join('\n')}\n`;

const refused: readonly (readonly [name: string, text: string, message: RegExp])[] = [
  ['text that is not TOML', 'nope', /line 1 is not valid TOML/],
  ['a wrong type', registry('location = 1'), /location must be a string/],
  ['a registry that is no table', 'registry = ["a.test"]', /registry must be a list of tables/],
  ['a URL', registry('location = "https://a.test"'), /"https:\/\/a\.test" must have no scheme/],
  ['a registry without a name', registry('insecure = true'), /neither a prefix nor a location/],
  ['a prefix without location', registry('prefix = "a.test"'), /"a\.test" has no location/],
  [
    'a wildcard with a path',
    registry('prefix = "*.a.test/x"', 'location = "b.test"'),
    /form \*\.example\.com/,
  ],
  ['a mirror without location', mirror('insecure = true'), /a mirror has no location/],
  [
    'an unknown use of a mirror',
    mirror('location = "m"', 'pull-from-mirror = "x"'),
    /all, digest-only or tag-only/,
  ],
  [
    'a use of the registry itself',
    registry('location = "a.test"', 'pull-from-mirror = "all"'),
    /is for mirrors/,
  ],
  [
    'contradictory uses',
    `${registry('location = "a.test"', 'mirror-by-digest-only = true')}[[registry.mirror]]\nlocation = "m"\npull-from-mirror = "all"\n`,
    /exclude each other/,
  ],
  [
    'contradictory registries',
    registry('location = "a.test"') + registry('prefix = "b.test"', 'location = "a.test"', 'blocked = true'),
    /"a\.test" is defined several times with conflicting blocked/,
  ],
  [
    'more mirrors than any registry has',
    mirror() + '[[registry.mirror]]\nlocation = "m"\n'.repeat(101),
    /100 mirrors/,
  ],
  [
    'a path in a search registry',
    'unqualified-search-registries = ["a.test/x"]',
    /"a\.test\/x" .* is not a host/,
  ],
  ['an unknown mode', 'short-name-mode = "x"', /short-name-mode "x" is not known/],
  ['an alias of another type', '[aliases]\na = 1', /aliases\."a" must be a string/],
  ['an alias with a tag', '[aliases]\na = "a.test/x:1"', /must have no tag/],
  ['an alias without a registry', '[aliases]\na = "x"', /"x" names no registry/],
  ['an alias for a full name', '[aliases]\n"a.test/x" = "b.test/x"', /"a\.test\/x" names a registry/],
  ['an alias that is no name', '[aliases]\n"A b" = "b.test/x"', /invalid reference format/],
  ['keys of both versions', '[registries.search]\nregistries = []\n[aliases]\n', /version 1 and 2/],
];

for (const [name, text, message] of refused) {
  t.test(`${name} is refused`, async (t) => {
    t.throws(() => parseRegistriesConf(text), { name: 'InvalidConfig', message });
  });
}

t.test('version 1 is for the main file only', async (t) => {
  const text =
    '[registries.search]\nregistries = ["a.test/"]\n[registries.insecure]\nregistries = ["b.test", "c.test"]\n[registries.block]\nregistries = ["b.test"]\n';
  const { registries, search } = parseRegistriesConf(text, '/r');
  t.strictSame(search, { registries: ['a.test'], file: '/r' });
  t.strictSame(
    registries.map(({ prefix, insecure, blocked }) => [prefix, insecure, blocked]),
    [
      ['b.test', true, true],
      ['c.test', true, false],
    ],
  );
  t.throws(() => parseRegistriesConf(text, '/r', true), { message: /a drop-in cannot be of version 1/ });
});

async function load(t: Test, files: Readonly<Record<string, string>>, changes: Partial<CrioConf> = {}) {
  const root = t.testdir();
  writeFiles(root, files);
  mkdirSync(join(root, '/etc/containers/registries.conf.d/dir.conf'), { recursive: true });
  symlinkSync('/nowhere', join(root, '/etc/containers/registries.conf.d/link.conf'));
  return await loadRegistries({ ...defaultCrioConf, ...changes }, root);
}

const files = {
  '/etc/containers/registries.conf': `unqualified-search-registries = ["a.test"]\n[aliases]\nx = "a.test/x"\ny = "a.test/y"\n${registry('location = "b.test"', 'insecure = true')}`,
  '/etc/containers/registries.conf.d/2.conf':
    registry('location = "b.test"') + registry('location = "a.test"'),
  '/etc/containers/registries.conf.d/1.conf': '[aliases]\nx = ""\n',
  '/etc/containers/registries.conf.d/3.txt': 'nope',
  '/var/cache/containers/short-name-aliases.conf': '[aliases]\ny = "c.test/y"\n',
};

t.test('later files replace entries by prefix, aliases by name, and lists that they mention', async (t) => {
  const conf = await load(t, files);
  like(t, conf.registries, [
    { prefix: 'a.test', insecure: false },
    { prefix: 'b.test', insecure: false, file: '/etc/containers/registries.conf.d/2.conf' },
  ]);
  t.strictSame(conf.search?.registries, ['a.test']);
  t.strictSame(Object.fromEntries(conf.aliases), {
    x: { repository: '', file: '/etc/containers/registries.conf.d/1.conf' },
    y: { repository: 'c.test/y', file: '/var/cache/containers/short-name-aliases.conf' },
  });
});

t.test('the files of root’s home, and those that flags name, come first', async (t) => {
  const own = { ...files, '/root/.config/containers/registries.conf': registry('location = "own.test"') };
  const prefixes = async (changes: Partial<CrioConf> = {}) =>
    (
      await load(t, { ...own, '/r.conf': registry('location = "flag.test"'), '/d/x.conf': '' }, changes)
    ).registries.map(({ prefix }) => prefix);
  t.strictSame(await prefixes(), ['own.test']);
  t.strictSame(await prefixes({ registriesConf: '/r.conf', registriesConfDir: '/d' }), ['flag.test']);
  await t.rejects(load(t, own, { registriesConf: '/none' }), { where: '/none', message: /no such file/ });
});
