/** Mirrors and locations. `npm run vectors` compares many more cases with the library of CRI-O. */
import t from 'tap';
import { pullSources, rewrite } from '../../../daemon/crio/pull-sources.ts';
import { parseRegistriesConf } from '../../../daemon/crio/registries-conf.ts';

const digest = `sha256:${'a'.repeat(64)}`;

const conf = parseRegistriesConf(
  `
[[registry]]
location = "corp.test"
  [[registry.mirror]]
  location = "m1.test/c"
  pull-from-mirror = "digest-only"
  [[registry.mirror]]
  location = "m2.test"
  pull-from-mirror = "tag-only"
[[registry]]
location = "corp.test/team"
mirror-by-digest-only = true
  [[registry.mirror]]
  location = "blocked.test/t"
[[registry]]
location = "blocked.test"
blocked = true
[[registry]]
prefix = "*.sub.test"
  [[registry.mirror]]
  location = "m3.test/s"
`,
  '/r',
);

const sources = (reference: string): string =>
  pullSources(reference, conf)
    .map(({ domain, path, blockedBy, file }) =>
      [`${domain}/${path}`, blockedBy && 'blocked', file].filter(Boolean).join(' '),
    )
    .join(', ');

t.test('mirrors in their order, then the location', async (t) => {
  t.equal(sources('corp.test/x:1'), 'm2.test/x /r, corp.test/x /r');
  t.equal(sources(`corp.test/x@${digest}`), 'm1.test/c/x /r, corp.test/x /r');
  t.equal(sources('corp.test/team/x:1'), 'corp.test/team/x /r');
  t.equal(sources(`corp.test/team/x@${digest}`), 'blocked.test/t/x blocked /r, corp.test/team/x /r');
  t.equal(sources('other.test/x:1'), 'other.test/x');
  t.equal(sources('a.b.sub.test/x:1'), 'm3.test/s/x /r, a.b.sub.test/x');
  t.equal(sources('sub.test/x:1'), 'sub.test/x', 'not the domain itself');
  t.equal(sources('corp.test:80/x:1'), 'm2.test:80/x, corp.test:80/x', 'the author of a pod names the port');
});

t.test('a source that is no reference spoils the pull', async (t) => {
  for (const location of ['nohost', 'm.test/A'])
    t.throws(() => rewrite('corp.test/x:1', 'corp.test', location), { name: 'InvalidConfig' }, location);
  t.throws(() => rewrite('corp.test/x:1', 'other.test', 'm.test'), { message: /does not apply/ });
  t.throws(() => rewrite('corp.test/x:1', 'corp.test', ''), { message: /has no location/ });
});
