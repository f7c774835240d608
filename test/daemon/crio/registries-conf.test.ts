/** What `npm run vectors` does not compare with the library of CRI-O. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { defaultCrioConf, type CrioConf } from '../../../daemon/crio/crio-conf.ts';
import { loadRegistries } from '../../../daemon/crio/registries-conf.ts';
import { parseRegistriesConf } from '../../../daemon/crio/registries-conf.ts';
import { NodeFiles } from '../../../daemon/node-files.ts';
import { writeFiles } from '../../support/write-files.ts';

const registry = (...lines: readonly string[]): string => `[[registry]]\n${lines.join('\n')}\n`;
const mirror = (...lines: readonly string[]): string =>
  `${registry('location = "a.test"')}[[registry.mirror]]\n${lines.join('\n')}\n`;

const refused: readonly (readonly [name: string, text: string, message: RegExp])[] = [
  ['a registry that is no table', 'registry = ["a.test"]', /registry must be a list of tables/],
  ['a prefix without location', registry('prefix = "a.test"'), /"a\.test" has no location/],
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
  ['an alias of another type', '[aliases]\na = 1', /aliases\."a" must be a string/],
  ['an alias for a full name', '[aliases]\n"a.test/x" = "b.test/x"', /"a\.test\/x" names a registry/],
];

for (const [name, text, message] of refused) {
  t.test(`${name} is refused`, async (t) => {
    t.throws(() => parseRegistriesConf(text), { name: 'InvalidConfig', message });
  });
}

async function load(t: Test, files: Readonly<Record<string, string>>, changes: Partial<CrioConf> = {}) {
  const root = t.testdir();
  writeFiles(root, files);
  mkdirSync(join(root, '/etc/containers/registries.conf.d/dir.conf'), { recursive: true });
  symlinkSync('/nowhere', join(root, '/etc/containers/registries.conf.d/link.conf'));
  return await loadRegistries({ ...defaultCrioConf, ...changes }, new NodeFiles(root));
}

t.test('drop-ins that are directories, or links to nothing, are skipped', async (t) => {
  t.strictSame((await load(t, {})).files, []);
});

t.test('the files of root’s home, and those that flags name, come first', async (t) => {
  const own = { '/root/.config/containers/registries.conf': registry('location = "own.test"') };
  const prefixes = async (changes: Partial<CrioConf> = {}) =>
    (
      await load(t, { ...own, '/r.conf': registry('location = "flag.test"'), '/d/x.conf': '' }, changes)
    ).registries.map(({ prefix }) => prefix);
  t.strictSame(await prefixes(), ['own.test']);
  t.strictSame(await prefixes({ registriesConf: '/r.conf', registriesConfDir: '/d' }), ['flag.test']);
  await t.rejects(load(t, own, { registriesConf: '/none' }), { where: '/none', message: /no such file/ });
});
